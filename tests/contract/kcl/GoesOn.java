// Consumes a stream with the real Kinesis Client Library and prints each user record, a line each, until standard input ends.
// Started from source: java -cp <its jars> GoesOn.java STREAM APPLICATION; endpoints are in KINESIS and DYNAMODB.

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
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
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

public final class GoesOn {
    private static final class Printer implements ShardRecordProcessor {
        private String shard;

        @Override
        public void initialize(InitializationInput input) {
            shard = input.shardId();
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            for (KinesisClientRecord record : input.records()) {
                System.out.println(shard + " " + StandardCharsets.UTF_8.decode(record.data()));
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
        String kinesisEndpoint = System.getenv("KINESIS");
        KinesisAsyncClient kinesis = made(
                KinesisAsyncClient.builder().httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP1_1)), kinesisEndpoint);
        DynamoDbAsyncClient tables = made(DynamoDbAsyncClient.builder(), System.getenv("DYNAMODB"));
        CloudWatchAsyncClient nobody = made(CloudWatchAsyncClient.builder(), kinesisEndpoint);
        ConfigsBuilder configs =
                new ConfigsBuilder(arguments[0], arguments[1], kinesis, tables, nobody, UUID.randomUUID().toString(), Printer::new);
        Scheduler scheduler = new Scheduler(
                configs.checkpointConfig(),
                configs.coordinatorConfig().shardConsumerDispatchPollIntervalMillis(100),
                configs.leaseManagementConfig().failoverTimeMillis(2000).shardSyncIntervalMillis(2000),
                configs.lifecycleConfig(),
                configs.metricsConfig().metricsLevel(MetricsLevel.NONE),
                configs.processorConfig(),
                configs.retrievalConfig().retrievalSpecificConfig(new PollingConfig(arguments[0], kinesis).idleTimeBetweenReadsInMillis(250)));
        Thread thread = new Thread(scheduler);
        thread.start();
        while (System.in.read() >= 0) {}
        scheduler.startGracefulShutdown().get(20, TimeUnit.SECONDS);
        System.exit(0);
    }
}
