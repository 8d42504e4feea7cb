// Takes Kinesis records apart with the real Kinesis Client Library: one in base64 a line in, what it delivers of it a line out.
// Started from source: java -cp <its jars> Deaggregate.java [LOWEST HIGHEST hash key of the shard]
//
// A line begins with how many user records the aggregate has ("-": it is none, "!": the library fails), then each that is delivered, as
// sub:key:data in hexadecimal.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import software.amazon.kinesis.retrieval.AggregatorUtil;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.kpl.Messages;

public final class Deaggregate {
    private static final HexFormat HEX = HexFormat.of();
    private static final BigInteger MOST = BigInteger.ONE.shiftLeft(128).subtract(BigInteger.ONE);

    private static String told(KinesisClientRecord user) {
        byte[] data = new byte[user.data().remaining()];
        user.data().duplicate().get(data);
        return user.subSequenceNumber() + ":" + HEX.formatHex(user.partitionKey().getBytes(StandardCharsets.UTF_8)) + ":" + HEX.formatHex(data);
    }

    private static String apart(byte[] data, BigInteger lowest, BigInteger highest) {
        KinesisClientRecord record = KinesisClientRecord.builder()
                .data(ByteBuffer.wrap(data))
                .partitionKey("outer")
                .sequenceNumber("1")
                .approximateArrivalTimestamp(Instant.EPOCH)
                .build();
        List<KinesisClientRecord> users;
        try {
            users = new AggregatorUtil().deaggregate(List.of(record), lowest, highest);
        } catch (Throwable error) {
            return "!" + error;
        }
        if (users.size() == 1 && !users.get(0).aggregated()) {
            return "-";
        }
        try {
            int count = Messages.AggregatedRecord.parseFrom(Arrays.copyOfRange(data, 4, data.length - 16)).getRecordsCount();
            return count + users.stream().map(user -> " " + told(user)).collect(Collectors.joining());
        } catch (Exception error) {
            return "!" + error;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BigInteger lowest = arguments.length > 0 ? new BigInteger(arguments[0]) : BigInteger.ZERO;
        BigInteger highest = arguments.length > 1 ? new BigInteger(arguments[1]) : MOST;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(apart(Base64.getDecoder().decode(line), lowest, highest));
            out.flush();
        }
    }
}
