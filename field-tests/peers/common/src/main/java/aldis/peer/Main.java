package aldis.peer;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Starts a peer around an unmodified JXTA library, obeys standard input, reports on standard output. */
public final class Main {
    private static final int STOP_SECONDS = 8;

    private Main() {
    }

    public static void main(String[] args) throws Exception {
        Options options;
        try {
            options = Options.parse(args);
        } catch (Options.Wrong e) {
            System.err.println("peer: " + e.getMessage() + " (see field-tests/peers/README.md)");
            System.exit(2);
            return;
        }
        Library.properties(options); // before any class of the library is loaded
        Events.emit("start", "name", options.name, "role", options.rdv ? "rdv" : "edge", "library", Library.NAME,
                "signed", Library.signs(options), "pid", ProcessHandle.current().pid());

        File home = options.home == null
                ? Files.createTempDirectory("jxta-peer-").toFile()
                : new File(options.home).getAbsoluteFile();
        boolean temporary = options.home == null;
        Thread hook = new Thread(() -> remove(home, temporary));
        Runtime.getRuntime().addShutdownHook(hook);
        Files.createDirectories(home.toPath());
        PrintStream log = new PrintStream(new FileOutputStream(new File(home, "library.log"), true), true, "UTF-8");
        System.setOut(log);
        System.setErr(log);

        Peer peer;
        try {
            peer = new Peer(options, home);
        } catch (Throwable e) {
            Events.error("start", e, null);
            remove(home, temporary);
            Runtime.getRuntime().halt(1);
            return;
        }
        Events.emit("ready", "id", peer.id());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null && !line.trim().equals("quit"); line = in.readLine()) {
            try {
                peer.command(line.trim());
            } catch (RuntimeException e) {
                Events.error(line.trim(), e, null);
            }
        }
        // The library's own threads are no daemons and some of its stops may hang: it gets a while, then we end.
        Thread stop = new Thread(peer::stop, "stop");
        stop.setDaemon(true);
        stop.start();
        stop.join(STOP_SECONDS * 1000L);
        Events.emit("bye");
        remove(home, temporary);
        Runtime.getRuntime().halt(0);
    }

    private static void remove(File home, boolean temporary) {
        if (!temporary) {
            return;
        }
        try (Stream<Path> all = Files.walk(home.toPath())) {
            all.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
        } catch (IOException | UncheckedIOException e) {
            // Something of the library still writes there; an empty temporary directory may stay behind.
        }
    }
}
