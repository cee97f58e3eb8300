package aldis.peer;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import net.jxta.protocol.PipeAdvertisement;
import net.jxta.socket.JxtaServerSocket;
import net.jxta.socket.JxtaSocket;

/** The sock- commands of README.md. JxtaBiDiPipe of 2.2 is not reliable: no bidi- commands. */
final class Streams {
    private static final int CONNECT_MS = 60_000;
    private static final int DAY_MS = 86_400_000;
    private static final Map<String, Streams> ALL = new ConcurrentHashMap<>();

    /** What the library's output stream calls. That one sends in pieces of 16,384 octets, has no flush and mixes octets up. */
    private static final Method WRITE;

    static {
        try {
            WRITE = JxtaSocket.class.getDeclaredMethod("write", byte[].class, int.class, int.class);
            WRITE.setAccessible(true);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }

    private final Room room;
    private final String name;
    private final ExecutorService hand;
    private final List<JxtaSocket> ends = new ArrayList<>();
    private long seq;

    private Streams(Room room, String name) {
        this.room = room;
        this.name = name;
        hand = Executors.newSingleThreadExecutor(Room.daemon("socket " + name));
    }

    /** Obeys one command; false when it is none of these. */
    static boolean command(Room room, String verb, List<String> words) {
        if (!verb.startsWith("sock-")) {
            return false;
        }
        String name = words.get(0);
        Streams s = ALL.computeIfAbsent(room.groupName + "/" + name, k -> new Streams(room, name));
        switch (verb) {
            case "sock-listen" -> room.service(name).provide("unicast", pipe -> s.work(() -> s.listen(pipe)));
            case "sock-connect" -> room.service(name).withPipe(pipe -> s.work(() -> s.connect(pipe)));
            case "sock-send" -> {
                int size = (int) number(words, 1, 0);
                if (size < Track.MIN_SIZE || size > Track.MAX_SIZE) {
                    Events.error(verb + ": SIZE " + Track.MIN_SIZE + " to " + Track.MAX_SIZE, null, room.groupName);
                    return true;
                }
                long count = (long) number(words, 2, 1);
                long every = (long) (number(words, 3, 0) * 1e9);
                s.work(() -> s.send(size, count, every));
            }
            case "sock-close" -> s.work(s::close);
            default -> {
                return false;
            }
        }
        return true;
    }

    private interface Work {
        void run() throws Exception;
    }

    private static double number(List<String> words, int i, double absent) {
        return i < words.size() ? Double.parseDouble(words.get(i)) : absent;
    }

    private void work(Work work) {
        hand.execute(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                Events.error("socket " + name, e, room.groupName);
            }
        });
    }

    private void emitAt(String t, String ev, Object... members) {
        List<Object> all = new ArrayList<>(List.of("name", name, "kind", "socket"));
        all.addAll(List.of(members));
        if (room.groupName != null) {
            all.addAll(List.of("group", room.groupName));
        }
        Events.emitAt(t, ev, all.toArray());
    }

    private void listen(PipeAdvertisement pipe) throws Exception {
        JxtaServerSocket sockets = new JxtaServerSocket(room.group(), pipe, 10, DAY_MS);
        Room.daemon("accept " + name).newThread(() -> accept(sockets)).start();
        emitAt(Events.now(), "pipe_ready");
    }

    private void accept(JxtaServerSocket sockets) {
        while (!sockets.isClosed()) {
            try {
                opened(sockets.accept());
            } catch (SocketTimeoutException e) {
                // A day without a caller.
            } catch (Exception e) {
                Events.error("socket " + name + ": accept", e, room.groupName);
                return;
            }
        }
    }

    private void connect(PipeAdvertisement pipe) throws Exception {
        opened(new JxtaSocket(room.group(), null, pipe, CONNECT_MS, true));
    }

    private synchronized void opened(JxtaSocket socket) throws IOException {
        DataInputStream in = new DataInputStream(socket.getInputStream());
        Room.daemon("read " + name).newThread(() -> read(in)).start();
        ends.add(socket);
        emitAt(Events.now(), "opened");
    }

    /** Messages on a socket are their length in four octets and the body. */
    private void read(DataInputStream in) {
        try {
            while (true) {
                int size = in.readInt();
                if (size < 0 || size > Track.MAX_SIZE) {
                    Events.error("socket " + name + ": length " + size, null, room.groupName);
                    return;
                }
                byte[] body = new byte[size];
                in.readFully(body);
                String now = Events.now();
                Track.Seen seen = Track.check(body, List.of());
                emitAt(now, "received", "from", seen.from(), "seq", seen.seq(), "size", body.length, "crc", seen.crc(),
                        "elements", 1, "ok", seen.ok(), "t_sent", new Events.Raw(seen.tSent()));
            }
        } catch (EOFException e) {
            emitAt(Events.now(), "closed");
        } catch (Exception e) {
            Events.error("socket " + name + ": read", e, room.groupName);
        }
    }

    private void send(int size, long count, long everyNs) throws Exception {
        long due = System.nanoTime();
        for (long i = 0; i < count; i++, due += everyNs) {
            while (due - System.nanoTime() > 0) {
                LockSupport.parkNanos(due - System.nanoTime());
            }
            List<JxtaSocket> all;
            synchronized (this) {
                all = List.copyOf(ends);
            }
            for (JxtaSocket socket : all) {
                socket.getOutputStream(); // makes what write needs
            }
            if (all.isEmpty()) {
                throw new IOException("no connection");
            }
            long n = ++seq;
            String at = Events.now();
            byte[] body = Track.body(room.options.name, n, at, size, List.of());
            for (JxtaSocket socket : all) {
                WRITE.invoke(socket, ByteBuffer.allocate(4 + size).putInt(size).put(body).array(), 0, 4 + size);
            }
            emitAt(at, "sent", "seq", n, "size", size, "crc", Track.crc(body, List.of()), "elements", 1);
        }
    }

    private void close() throws Exception {
        List<JxtaSocket> all;
        synchronized (this) {
            all = List.copyOf(ends);
            ends.clear();
        }
        for (JxtaSocket socket : all) {
            socket.close();
            emitAt(Events.now(), "closed");
        }
    }
}
