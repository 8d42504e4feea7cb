// What the daemon of MultiLang does for a shard: it hands records to a program of another language, a line of JSON a message (KCL's documentation, "MultiLang").
// The daemon's own jar is not published where the tests fetch theirs. The program is in CHILD, words with blanks between them.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.processor.RecordProcessorCheckpointer;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.retrieval.KinesisClientRecord;

public final class MultiLang implements ShardRecordProcessor {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Writer to;
    private final BufferedReader from;

    public MultiLang(Path ignored) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(System.getenv("CHILD").split(" ")).redirectError(ProcessBuilder.Redirect.INHERIT);
        Process child = builder.start();
        to = child.outputWriter();
        from = child.inputReader();
    }

    private void ask(ObjectNode message, RecordProcessorCheckpointer checkpointer) {
        try {
            say(message);
            for (String line = from.readLine(); line != null; line = from.readLine()) {
                if (line.isBlank()) {
                    continue;
                }
                JsonNode reply = JSON.readTree(line);
                if (reply.path("action").asText().equals("status")) {
                    return;
                }
                ObjectNode answer = JSON.createObjectNode().put("action", "checkpoint").putNull("error");
                checkpointer.checkpoint();
                say(answer.putNull("sequenceNumber").putNull("subSequenceNumber"));
            }
            throw new IllegalStateException("the program ended");
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private void say(ObjectNode message) throws IOException {
        to.write(JSON.writeValueAsString(message) + "\n");
        to.flush();
    }

    private static ObjectNode action(String name) {
        return JSON.createObjectNode().put("action", name);
    }

    @Override
    public void initialize(InitializationInput input) {
        ask(action("initialize").put("shardId", input.shardId()).put("sequenceNumber", "TRIM_HORIZON").putNull("subSequenceNumber"), null);
    }

    @Override
    public void processRecords(ProcessRecordsInput input) {
        ObjectNode message = action("processRecords").put("millisBehindLatest", input.millisBehindLatest());
        ArrayNode records = message.putArray("records");
        for (KinesisClientRecord record : input.records()) {
            byte[] data = new byte[record.data().remaining()];
            record.data().duplicate().get(data);
            ObjectNode each = records.addObject().put("action", "record").put("data", data).put("partitionKey", record.partitionKey());
            each.put("sequenceNumber", record.sequenceNumber()).put("subSequenceNumber", record.subSequenceNumber());
            each.put("approximateArrivalTimestamp", record.approximateArrivalTimestamp().toEpochMilli());
        }
        ask(message, input.checkpointer());
    }

    @Override
    public void leaseLost(LeaseLostInput input) {
        ask(action("leaseLost"), null);
    }

    @Override
    public void shardEnded(ShardEndedInput input) {
        ask(action("shardEnded"), input.checkpointer());
    }

    @Override
    public void shutdownRequested(ShutdownRequestedInput input) {
        ask(action("shutdownRequested"), input.checkpointer());
    }
}
