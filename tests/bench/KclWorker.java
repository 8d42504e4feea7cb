// A worker of the real Kinesis Client Library that notes what it was handed: a line of JSON a call, before its checkpoint.
// java -cp <its jars>:<this> KclWorker STREAM APPLICATION SINK HOLD [MILLISECONDS from read to read]; endpoints are in KINESIS and DYNAMODB.
//
// All settings are KCL's defaults but these: names, endpoints, TRIM_HORIZON, polling (emulators have no fan-out that ends a shard), no metrics
// (there is no CloudWatch). While the file HOLD exists a call does not return, so that a kill is in the middle of it.

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.client.builder.AwsAsyncClientBuilder;
import software.amazon.awssdk.awscore.client.builder.AwsClientBuilder;
import software.amazon.awssdk.http.Protocol;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

public final class KclWorker {
    private static final AtomicLong CALLS = new AtomicLong();

    private record Sink(FileChannel out, Path hold) {
        synchronized void note(String shard, ProcessRecordsInput input, boolean held) throws Exception {
            String sequences = input.records().stream()
                    .map(record -> '"' + record.sequenceNumber() + '"')
                    .collect(Collectors.joining(","));
            String line = "{\"unit\":%d,\"at\":%s,\"held\":%s,\"records\":{\"%s\":[%s]}}\n"
                    .formatted(CALLS.incrementAndGet(), System.currentTimeMillis() / 1000.0, held, shard, sequences);
            ByteBuffer bytes = ByteBuffer.wrap(line.getBytes(StandardCharsets.US_ASCII));
            while (bytes.hasRemaining()) {
                out.write(bytes);
            }
        }

        void process(String shard, ProcessRecordsInput input) throws Exception {
            boolean held = Files.exists(hold);
            note(shard, input, held);
            while (held && Files.exists(hold)) {
                Thread.sleep(20);
            }
        }
    }

    private static final class Noting implements ShardRecordProcessor {
        private final Sink sink;
        private String shard;

        Noting(Sink sink) {
            this.sink = sink;
        }

        @Override
        public void initialize(InitializationInput input) {
            shard = input.shardId();
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            try {
                sink.process(shard, input);
                input.checkpointer().checkpoint();
            } catch (Exception error) {
                error.printStackTrace(); // what KCL passes over after an exception is missing in the account
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void leaseLost(LeaseLostInput input) {}

        @Override
        public void shardEnded(ShardEndedInput input) {
            try {
                input.checkpointer().checkpoint();
            } catch (InvalidStateException | ShutdownException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void shutdownRequested(ShutdownRequestedInput input) {}
    }

    private static <B extends AwsClientBuilder<B, C> & AwsAsyncClientBuilder<B, C>, C> C made(B builder, String endpoint) {
        return builder.region(Region.US_EAST_1)
                .endpointOverride(URI.create(endpoint))
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("bench", "bench")))
                .build();
    }

    public static void main(String[] arguments) throws Exception {
        String stream = arguments[0];
        String endpoint = System.getenv("KINESIS");
        FileChannel out = FileChannel.open(Path.of(arguments[2]), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        Sink sink = new Sink(out, Path.of(arguments[3]));
        KinesisAsyncClient kinesis =
                made(KinesisAsyncClient.builder().httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP1_1)), endpoint);
        DynamoDbAsyncClient tables = made(DynamoDbAsyncClient.builder(), System.getenv("DYNAMODB"));
        CloudWatchAsyncClient nobody = made(CloudWatchAsyncClient.builder(), endpoint);
        SingleStreamTracker beginning =
                new SingleStreamTracker(stream, InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON));
        ConfigsBuilder configs = new ConfigsBuilder(
                beginning, arguments[1], kinesis, tables, nobody, UUID.randomUUID().toString(), () -> new Noting(sink));
        PollingConfig polling = new PollingConfig(stream, kinesis);
        if (arguments.length > 4) {
            polling.idleTimeBetweenReadsInMillis(Long.parseLong(arguments[4]));
        }
        new Scheduler(
                        configs.checkpointConfig(),
                        configs.coordinatorConfig(),
                        configs.leaseManagementConfig(),
                        configs.lifecycleConfig(),
                        configs.metricsConfig().metricsLevel(MetricsLevel.NONE),
                        configs.processorConfig(),
                        configs.retrievalConfig().retrievalSpecificConfig(polling))
                .run();
    }
}
