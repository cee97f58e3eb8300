package aldis.peer;

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import net.jxta.endpoint.ByteArrayMessageElement;
import net.jxta.endpoint.Message;
import net.jxta.endpoint.MessageElement;
import net.jxta.pipe.PipeMsgEvent;
import net.jxta.protocol.PipeAdvertisement;
import net.jxta.socket.JxtaServerSocket;
import net.jxta.socket.JxtaSocket;
import net.jxta.util.JxtaBiDiPipe;
import net.jxta.util.JxtaServerPipe;
import net.jxta.util.PipeStateListener;
import net.jxta.util.ServerPipeAcceptListener;

/** JxtaBiDiPipe and JxtaSocket, both reliable: the bidi- and sock- commands of README.md. */
final class Streams {
    private static final int CONNECT_MS = 60_000;
    private static final int CLOSE_MS = 60_000;
    private static final int DAY_MS = 86_400_000;
    private static final String NAMESPACE = "trk";
    private static final String BODY = "body";
    private static final String BIDI = "bidi";
    private static final String SOCKET = "socket";
    private static final Map<String, Streams> ALL = new ConcurrentHashMap<>();

    private final Room room;
    private final String name;
    private final String kind;
    /** Sending blocks while the window is closed, so each name has its own thread. */
    private final ExecutorService hand;
    private final List<End> ends = new ArrayList<>();
    private AutoCloseable server;
    private long seq;
    private volatile int generation;

    private Streams(Room room, String name, String kind) {
        this.room = room;
        this.name = name;
        this.kind = kind;
        hand = Executors.newSingleThreadExecutor(Room.daemon(kind + " " + name));
    }

    /** Obeys one command; false when it is none of these. */
    static boolean command(Room room, String verb, List<String> words) {
        String kind = verb.startsWith("bidi-") ? BIDI : verb.startsWith("sock-") ? SOCKET : null;
        if (kind == null) {
            return false;
        }
        String name = words.get(0);
        Streams s = ALL.computeIfAbsent(room.groupName + "/" + kind + "/" + name, k -> new Streams(room, name, kind));
        switch (verb.substring("bidi-".length())) {
            case "listen" -> room.service(name).provide("unicast", pipe -> s.work(() -> s.listen(pipe)));
            case "connect" -> room.service(name).withPipe(pipe -> s.work(() -> s.connect(pipe)));
            case "send" -> {
                int size = (int) number(words, 1, 0);
                if (size < Track.MIN_SIZE || size > Track.MAX_SIZE) {
                    Events.error(verb + ": SIZE " + Track.MIN_SIZE + " to " + Track.MAX_SIZE, null, room.groupName);
                    return true;
                }
                int now = s.generation;
                long count = (long) number(words, 2, 1);
                long every = (long) (number(words, 3, 0) * 1e9);
                s.work(() -> s.send(now, size, count == 0 ? Long.MAX_VALUE : count, every));
            }
            case "stop" -> s.generation++;
            case "close" -> {
                s.generation++;
                s.work(s::close);
            }
            case "unlisten" -> s.work(() -> s.server.close());
            default -> {
                return false;
            }
        }
        return true;
    }

    /** One connection. */
    private interface End {
        void send(byte[] body) throws Exception;

        void close() throws Exception;
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
                Events.error(kind + " " + name, e, room.groupName);
            }
        });
    }

    private void emit(String ev, Object... members) {
        emitAt(Events.now(), ev, members);
    }

    private void emitAt(String t, String ev, Object... members) {
        List<Object> all = new ArrayList<>(List.of("name", name, "kind", kind));
        all.addAll(List.of(members));
        if (room.groupName != null) {
            all.addAll(List.of("group", room.groupName));
        }
        Events.emitAt(t, ev, all.toArray());
    }

    private void listen(PipeAdvertisement pipe) throws Exception {
        if (kind.equals(BIDI)) {
            JxtaServerPipe bidi = new JxtaServerPipe(room.group(), pipe, new ServerPipeAcceptListener() {
                @Override
                public void pipeAccepted(JxtaBiDiPipe accepted) {
                    accepted.setPipeStateListener(Streams.this::state);
                    opened(end(accepted));
                    accepted.setMessageListener(Streams.this::received);
                }

                @Override
                public void serverPipeClosed() {
                    // We did that.
                }
            });
            server = bidi::close;
        } else {
            JxtaServerSocket sockets = new JxtaServerSocket(room.group(), pipe, 10, DAY_MS);
            server = sockets;
            Thread acceptor = Room.daemon("accept " + name).newThread(() -> accept(sockets));
            acceptor.start();
        }
        emit("pipe_ready");
    }

    private void accept(JxtaServerSocket sockets) {
        while (!sockets.isClosed()) {
            try {
                Socket accepted = sockets.accept();
                if (accepted != null) {
                    opened(end(accepted));
                }
            } catch (SocketTimeoutException e) {
                // A day without a caller.
            } catch (Exception e) {
                if (!sockets.isClosed()) {
                    Events.error("socket " + name + ": accept", e, room.groupName);
                }
                return;
            }
        }
    }

    private void connect(PipeAdvertisement pipe) throws Exception {
        if (kind.equals(BIDI)) {
            JxtaBiDiPipe bidi = new JxtaBiDiPipe();
            bidi.setPipeStateListener(this::state);
            bidi.connect(room.group(), null, pipe, CONNECT_MS, this::received, true);
            synchronized (this) {
                ends.add(end(bidi)); // sending is possible before "opened"
            }
        } else {
            opened(end(new JxtaSocket(room.group(), null, pipe, CONNECT_MS, true)));
        }
    }

    private void state(Object source, int event) {
        switch (event) {
            case PipeStateListener.PIPE_OPENED_EVENT -> emit("opened");
            case PipeStateListener.PIPE_CLOSED_EVENT -> emit("closed");
            default -> emit("failed");
        }
    }

    private synchronized void opened(End end) {
        ends.add(end);
        emit("opened");
    }

    private static End end(JxtaBiDiPipe bidi) {
        return new End() {
            @Override
            public void send(byte[] body) throws IOException {
                Message message = new Message();
                message.addMessageElement(NAMESPACE, new ByteArrayMessageElement(BODY, null, body, null));
                if (!bidi.sendMessage(message)) {
                    throw new IOException("not sent");
                }
            }

            @Override
            public void close() throws IOException {
                bidi.close();
            }
        };
    }

    private End end(Socket socket) throws IOException {
        socket.setSoTimeout(DAY_MS); // or reading ends after 100 ms without an octet
        InputStream in = socket.getInputStream();
        Thread reader = Room.daemon("read " + name).newThread(() -> read(new DataInputStream(in)));
        reader.start();
        return new End() {
            @Override
            public void send(byte[] body) throws IOException {
                socket.getOutputStream().write(ByteBuffer.allocate(4 + body.length).putInt(body.length).put(body).array());
                socket.getOutputStream().flush();
            }

            @Override
            public void close() throws IOException {
                socket.setSoTimeout(CLOSE_MS); // as long as it waits for the other end
                socket.close();
                emit("closed");
            }
        };
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
                report(Events.now(), body, true);
            }
        } catch (EOFException e) {
            emit("closed");
        } catch (Exception e) {
            Events.error("socket " + name + ": read", e, room.groupName);
        }
    }

    private void received(PipeMsgEvent event) {
        String now = Events.now();
        MessageElement e = event.getMessage().getMessageElement(NAMESPACE, BODY);
        if (e == null) {
            Events.error("received on " + name + " a message without " + BODY, null, room.groupName);
            return;
        }
        report(now, e.getBytes(true), event.getMessage().getMessageElementsOfNamespace(NAMESPACE).hasNext());
    }

    private void report(String now, byte[] body, boolean ok) {
        Track.Seen seen = Track.check(body, List.of());
        emitAt(now, "received", "from", seen.from(), "seq", seen.seq(), "size", body.length, "crc", seen.crc(), "elements", 1,
                "ok", ok && seen.ok(), "t_sent", new Events.Raw(seen.tSent()));
    }

    /** Sends on every connection of this name, at a fixed rate that waiting for a window does not move. */
    private void send(int now, int size, long count, long everyNs) throws Exception {
        long due = System.nanoTime();
        for (long i = 0; i < count && now == generation; i++, due += everyNs) {
            while (due - System.nanoTime() > 0 && now == generation) {
                LockSupport.parkNanos(Math.min(due - System.nanoTime(), TimeUnit.MILLISECONDS.toNanos(100)));
            }
            List<End> all;
            synchronized (this) {
                all = List.copyOf(ends);
            }
            if (all.isEmpty()) {
                throw new IOException("no connection");
            }
            long n = ++seq;
            String at = Events.now();
            byte[] body = Track.body(room.options.name, n, at, size, List.of());
            for (End end : all) {
                end.send(body);
            }
            emitAt(at, "sent", "seq", n, "size", size, "crc", Track.crc(body, List.of()), "elements", 1);
        }
    }

    private void close() throws Exception {
        List<End> all;
        synchronized (this) {
            all = List.copyOf(ends);
            ends.clear();
        }
        for (End end : all) {
            end.close();
        }
    }
}
