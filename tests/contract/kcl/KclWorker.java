// A worker of the real Kinesis Client Library. Endpoints are in KINESIS and DYNAMODB.
//
// java -cp <its jars> KclWorker.java STREAM APPLICATION prints each user record, a line each, until standard input ends. Its leases and polls are quick.
// It checkpoints nothing but the ends of shards. With PROCESSOR, a class of the class path, that is the record processor. It gets the path FOLDER, and a
// record is printed once it has returned.
//
// java -cp <its jars>:<this> KclWorker STREAM APPLICATION SINK HOLD [MILLISECONDS from read to read] notes what it was handed: a line of JSON a call,
// before its checkpoint. All settings are KCL's defaults but these: names, endpoints, TRIM_HORIZON, polling (emulators have no fan-out that ends a shard),
// no metrics (there is no CloudWatch). While the file HOLD exists a call does not return, so that a kill is in the middle of it.

import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
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
import software.amazon.kinesis.coordinator.CoordinatorConfig;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.leases.LeaseManagementConfig;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.ShardRecordProcessorFactory;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

public final class KclWorker {
    private static final AtomicLong CALLS = new AtomicLong();

    private interface Handler {
        void process(String shard, ProcessRecordsInput input) throws Exception;
    }

    private static void print(String shard, ProcessRecordsInput input) {
        for (KinesisClientRecord record : input.records()) {
            System.out.println(shard + " " + StandardCharsets.UTF_8.decode(record.data()));
        }
    }

    private record Sink(FileChannel out, Path hold) implements Handler {
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

        @Override
        public void process(String shard, ProcessRecordsInput input) throws Exception {
            boolean held = Files.exists(hold);
            note(shard, input, held);
            while (held && Files.exists(hold)) {
                Thread.sleep(20);
            }
            input.checkpointer().checkpoint();
        }
    }

    private static final class Processor implements ShardRecordProcessor {
        private final Handler handler;
        private String shard;

        Processor(Handler handler) {
            this.handler = handler;
        }

        @Override
        public void initialize(InitializationInput input) {
            shard = input.shardId();
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            try {
                handler.process(shard, input);
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
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("tests", "tests")))
                .build();
    }

    public static void main(String[] arguments) throws Exception {
        String stream = arguments[0];
        String endpoint = System.getenv("KINESIS");
        boolean notes = arguments.length > 2;
        Handler handler = notes ? sink(Path.of(arguments[2]), Path.of(arguments[3])) : KclWorker::print;
        KinesisAsyncClient kinesis =
                made(KinesisAsyncClient.builder().httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP1_1)), endpoint);
        DynamoDbAsyncClient tables = made(DynamoDbAsyncClient.builder(), System.getenv("DYNAMODB"));
        CloudWatchAsyncClient nobody = made(CloudWatchAsyncClient.builder(), endpoint);
        SingleStreamTracker beginning =
                new SingleStreamTracker(stream, InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON));
        ConfigsBuilder configs = new ConfigsBuilder(
                beginning, arguments[1], kinesis, tables, nobody, UUID.randomUUID().toString(), processors(handler));
        PollingConfig polling = new PollingConfig(stream, kinesis);
        CoordinatorConfig coordination = configs.coordinatorConfig();
        LeaseManagementConfig leases = configs.leaseManagementConfig();
        if (!notes) {
            coordination.shardConsumerDispatchPollIntervalMillis(100);
            leases.failoverTimeMillis(2000).shardSyncIntervalMillis(2000);
            polling.idleTimeBetweenReadsInMillis(250);
        } else if (arguments.length > 4) {
            polling.idleTimeBetweenReadsInMillis(Long.parseLong(arguments[4]));
        }
        Scheduler scheduler = new Scheduler(
                configs.checkpointConfig(),
                coordination,
                leases,
                configs.lifecycleConfig(),
                configs.metricsConfig().metricsLevel(MetricsLevel.NONE),
                configs.processorConfig(),
                configs.retrievalConfig().retrievalSpecificConfig(polling));
        if (notes) {
            scheduler.run();
        } else {
            untilInputEnds(scheduler);
        }
    }

    private static ShardRecordProcessorFactory processors(Handler handler) {
        String name = System.getenv("PROCESSOR");
        return () -> {
            try {
                return name == null
                        ? new Processor(handler)
                        : printed(Class.forName(name).getConstructor(Path.class).newInstance(Path.of(System.getenv("FOLDER"))));
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        };
    }

    private static ShardRecordProcessor printed(Object processor) {
        Class<?>[] kinds = {ShardRecordProcessor.class};
        return (ShardRecordProcessor) Proxy.newProxyInstance(processor.getClass().getClassLoader(), kinds, (self, method, arguments) -> {
            String lines = "";
            if (arguments != null && arguments[0] instanceof ProcessRecordsInput input) {
                lines = input.records().stream()
                        .map(record -> StandardCharsets.UTF_8.decode(record.data().duplicate()) + "\n")
                        .collect(Collectors.joining());
            }
            Object result = method.invoke(processor, arguments);
            System.out.print(lines);
            return result;
        });
    }

    private static Sink sink(Path out, Path hold) throws Exception {
        return new Sink(FileChannel.open(out, StandardOpenOption.CREATE, StandardOpenOption.APPEND), hold);
    }

    private static void untilInputEnds(Scheduler scheduler) throws Exception {
        new Thread(scheduler).start();
        while (System.in.read() >= 0) {}
        scheduler.startGracefulShutdown().get(20, TimeUnit.SECONDS);
        System.exit(0);
    }
}
