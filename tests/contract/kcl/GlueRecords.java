// Records as a producer with Amazon's schema registry writes them, in base64, a line each: java -cp <the jars of KCL> GlueRecords.java VERSION SCHEMA [zlib] reads JSON documents,
// a line each, from standard input.

import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder;
import com.amazonaws.services.schemaregistry.utils.AWSSchemaRegistryConstants;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

public final class GlueRecords {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(AWSSchemaRegistryConstants.AWS_REGION, "us-east-1"));
        if (arguments.length > 2) {
            settings.put(AWSSchemaRegistryConstants.COMPRESSION_TYPE, arguments[2].toUpperCase());
        }
        SerializationDataEncoder header = new SerializationDataEncoder(new GlueSchemaRegistryConfiguration(settings));
        Schema schema = new Schema.Parser().parse(arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Object order = new GenericDatumReader<>(schema).read(null, DecoderFactory.get().jsonDecoder(schema, line));
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(body, null);
            new GenericDatumWriter<>(schema).write(order, encoder);
            encoder.flush();
            System.out.println(Base64.getEncoder().encodeToString(header.write(body.toByteArray(), UUID.fromString(arguments[0]))));
        }
    }
}
