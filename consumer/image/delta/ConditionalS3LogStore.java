package dev.sluice.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3, for several writers: a version is written by a PUT that S3 refuses if that version is there.
 *
 * Delta's own log store for S3 looks whether the version is there, and then writes it without a condition. A writer that stands still between the two
 * replaces a version that another one has written meanwhile, and that one's rows are lost.
 */
public class ConditionalS3LogStore extends HadoopFileSystemLogStore {
    /** S3A: PUT with {@code If-None-Match: *} (Hadoop 3.4.2 and later). */
    private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

    public ConditionalS3LogStore(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration) throws IOException {
        FileSystem files = path.getFileSystem(configuration);
        byte[] content = content(actions);
        try {
            put(files, path, content, overwrite);
        } catch (IOException failed) {
            if (overwrite || !files.exists(path)) {
                throw failed;
            }
            if (!Arrays.equals(content, read(files, path))) {
                throw new FileAlreadyExistsException(path.toString());
            }
            // Only the reply was lost: a version's first line names its transaction, so equal content is ours.
        }
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
        return false;
    }

    /** Everything is in memory before the file is opened: to close a file that is half written would publish it. */
    private static byte[] content(Iterator<String> actions) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            all.writeBytes(actions.next().getBytes(StandardCharsets.UTF_8));
            all.write('\n');
        }
        return all.toByteArray();
    }

    private static void put(FileSystem files, Path path, byte[] content, boolean overwrite) throws IOException {
        var builder = files.createFile(path).recursive().overwrite(true);
        if (!overwrite) {
            builder.must(CONDITIONAL, true);
        }
        try (FSDataOutputStream out = builder.build()) {
            out.write(content);
        }
    }

    private static byte[] read(FileSystem files, Path path) throws IOException {
        try (FSDataInputStream in = files.open(path)) {
            return in.readAllBytes();
        }
    }
}
