package aldis.peer;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import net.jxta.discovery.DiscoveryEvent;
import net.jxta.discovery.DiscoveryListener;
import net.jxta.discovery.DiscoveryService;
import net.jxta.document.AdvertisementFactory;
import net.jxta.endpoint.ByteArrayMessageElement;
import net.jxta.endpoint.EndpointAddress;
import net.jxta.endpoint.EndpointService;
import net.jxta.endpoint.Message;
import net.jxta.endpoint.MessageElement;
import net.jxta.endpoint.Messenger;
import net.jxta.id.IDFactory;
import net.jxta.pipe.OutputPipe;
import net.jxta.pipe.PipeMsgListener;
import net.jxta.pipe.PipeService;
import net.jxta.protocol.ModuleSpecAdvertisement;
import net.jxta.protocol.PipeAdvertisement;
import net.jxta.socket.JxtaServerSocket;
import net.jxta.socket.JxtaSocket;
import net.jxta.util.JxtaBiDiPipe;
import net.jxta.util.JxtaServerPipe;
import net.jxta.util.ServerPipeAcceptListener;

/**
 * Measures from inside the peer, so that neither standard input nor output is in the figures: the peer operations of the
 * performance model of 2004, and message and acknowledgement pairs and streams on pipes of every kind, on sockets, and on the
 * endpoint service below them.
 */
final class Bench {
    private static final String NAMESPACE = "trk";
    private static final String BODY = "body";
    private static final String WANT = "want"; // asks the other side for an acknowledgement
    private static final String ASK = "ask"; // the same, and does not count itself
    private static final String COUNT = "count"; // what it has received so far
    private static final long LIMIT_MS = 5_000; // after that a message or an answer is lost
    private static final long BURST_OVER_NS = 1_000_000_000; // without a further acknowledgement
    private static final long RESOLVE_MS = 15_000;
    private static final int CONNECT_MS = 30_000;
    private static final int ACK_EVERY = 16;
    private static final int MOST_LOST = 3; // pairs, then nothing more is tried
    private static final int PARTS = 5; // series of an operation

    private static final ExecutorService HAND = Executors.newSingleThreadExecutor(Room.daemon("bench"));
    private static final Map<String, Bench> ALL = new ConcurrentHashMap<>();
    private static final List<Object> KEPT = Collections.synchronizedList(new ArrayList<>()); // open for as long as the process runs

    /** What carries messages to the other side. A full queue of the library answers false: that is no loss yet. */
    private interface Way {
        boolean send(Message m) throws Exception;
    }

    private volatile Way out;
    private final CountDownLatch open = new CountDownLatch(2); // both directions
    private final AtomicLong received = new AtomicLong();
    private final AtomicLong counted = new AtomicLong();
    private final Semaphore acks = new Semaphore(0);

    private Bench() {
    }

    /** Answers false when the command is none of these. */
    static boolean command(Room room, String verb, List<String> words) {
        Bench b = ALL.computeIfAbsent(words.get(0), k -> new Bench());
        switch (verb) {
            case "bench-echo" -> b.pair(room, words.get(0), words.get(1), words.get(2), true);
            case "bench-pair" -> b.pair(room, words.get(0), words.get(2), words.get(1), false);
            case "bench-ping" -> run("ping", () -> b.ping(number(words, 1), number(words, 2), number(words, 3), number(words, 4), number(words, 5)));
            case "bench-flow" -> run("flow", () -> b.flow(number(words, 1), number(words, 2), number(words, 3), number(words, 4)));
            case "bench-burst" -> run("burst", () -> b.burst(number(words, 1), number(words, 2), number(words, 3)));
            case "bench-serve" -> room.whenReady(() -> run("serve", () -> serve(room, number(words, 0))));
            case "bench-ops" -> room.whenReady(() -> run("ops", () -> operations(room, number(words, 0))));
            default -> {
                return false;
            }
        }
        return true;
    }

    private static int number(List<String> words, int i) {
        return Integer.parseInt(words.get(i));
    }

    private interface Work {
        void run() throws Exception;
    }

    /** What fails says so in place of its figures. */
    private static void run(String name, Work work) {
        HAND.execute(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                Events.error("bench " + name, e, null);
                Events.emit("bench", "name", name, "text", e.toString());
            }
        });
    }

    // A way each direction: mine to hear on, theirs to send on.

    private void pair(Room room, String kind, String mine, String theirs, boolean echoes) {
        PipeMsgListener listener = e -> heard(e.getMessage(), echoes);
        switch (kind) {
            case "endpoint" -> room.whenReady(() -> run(kind, () -> endpoint(room, theirs, echoes)));
            case "bidi", "socket" -> {
                if (echoes) {
                    room.service(mine).provide("unicast", adv -> run(kind, () -> serveStream(room, kind, mine, adv)));
                } else {
                    room.service(theirs).find(1);
                    room.service(theirs).withPipe(adv -> run(kind, () -> connectStream(room, kind, mine, adv)));
                }
            }
            default -> {
                room.service(mine).provide(kind, adv -> {
                    try {
                        KEPT.add(room.group().getPipeService().createInputPipe(adv, listener));
                        open.countDown();
                    } catch (IOException e) {
                        Events.error("bench " + mine, e, null);
                    }
                });
                room.service(theirs).find(1);
                room.service(theirs).withPipe(adv -> run(kind, () -> {
                    out = output(room, adv);
                    ready(mine);
                }));
            }
        }
    }

    /** An output pipe, which is opened anew when the library has closed it, as it does with a secure one whose handshake came too early. */
    private static Way output(Room room, PipeAdvertisement adv) {
        AtomicReference<OutputPipe> pipe = new AtomicReference<>();
        while (pipe.get() == null) {
            try {
                pipe.set(room.group().getPipeService().createOutputPipe(adv, RESOLVE_MS));
            } catch (IOException e) {
                Events.error("bench " + adv.getName() + ": not resolved, trying again", e, null);
            }
        }
        return m -> {
            try {
                return pipe.get().send(m);
            } catch (IOException e) {
                if (!pipe.get().isClosed()) {
                    throw e;
                }
                Events.error("bench " + adv.getName() + ": opening it again", e, null);
                pipe.set(room.group().getPipeService().createOutputPipe(adv, RESOLVE_MS));
                return false;
            }
        };
    }

    /** Says that messages can go, once the other direction is open too. */
    private void ready(String mine) throws InterruptedException {
        open.countDown();
        open.await();
        Events.emit("bench_ready", "name", mine);
    }

    /** The layer below pipes: messages to a peer, by its ID. */
    private void endpoint(Room room, String peer, boolean echoes) throws Exception {
        EndpointService endpoint = room.group().getEndpointService();
        endpoint.addIncomingMessageListener((message, from, to) -> heard(message, echoes), "aldis-bench", null);
        EndpointAddress to = new EndpointAddress("jxta", peer.substring(peer.lastIndexOf(':') + 1), "aldis-bench", null);
        long end = System.nanoTime() + CONNECT_MS * 1_000_000L;
        Messenger messenger = null;
        while (messenger == null) {
            messenger = endpoint.getMessengerImmediate(to, null);
            if (messenger == null && System.nanoTime() > end) {
                throw new IOException("no route to " + peer);
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
        Messenger found = messenger;
        out = m -> found.sendMessage(m.clone()); // the library adds elements, also when it then refuses
        open.countDown();
        ready(echoes ? "echo" : "pair");
    }

    private void serveStream(Room room, String kind, String name, PipeAdvertisement adv) throws Exception {
        if (kind.equals("bidi")) {
            KEPT.add(new JxtaServerPipe(room.group(), adv, new ServerPipeAcceptListener() {
                @Override
                public void pipeAccepted(JxtaBiDiPipe accepted) {
                    KEPT.add(accepted);
                    out = accepted::sendMessage;
                    open.countDown();
                    accepted.setMessageListener(e -> heard(e.getMessage(), true));
                }

                @Override
                public void serverPipeClosed() {
                    // The end of the process does that.
                }
            }));
        } else {
            JxtaServerSocket server = new JxtaServerSocket(room.group(), adv, 10, 0);
            KEPT.add(server);
            Room.daemon("bench accept").newThread(() -> {
                try {
                    stream(server.accept(), true);
                } catch (Exception e) {
                    Events.error("bench socket", e, null);
                }
            }).start();
        }
        open.countDown();
        Events.emit("bench_ready", "name", name);
    }

    private void connectStream(Room room, String kind, String name, PipeAdvertisement adv) throws Exception {
        if (kind.equals("bidi")) {
            JxtaBiDiPipe bidi = new JxtaBiDiPipe();
            KEPT.add(bidi);
            bidi.connect(room.group(), null, adv, CONNECT_MS, e -> heard(e.getMessage(), false), true);
            long end = System.nanoTime() + CONNECT_MS * 1_000_000L;
            while (!bidi.isBound()) {
                if (System.nanoTime() > end) {
                    throw new IOException("no connection");
                }
                TimeUnit.MILLISECONDS.sleep(20);
            }
            out = bidi::sendMessage;
        } else {
            stream(new JxtaSocket(room.group(), null, adv, CONNECT_MS, true), false);
        }
        open.countDown();
        ready(name);
    }

    /** Messages on a socket: octets of the body, what is asked, the count, the body. */
    private void stream(Socket socket, boolean echoes) throws Exception {
        KEPT.add(socket);
        socket.setSoTimeout(86_400_000); // or reading ends after 100 ms without an octet
        DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        OutputStream to = socket.getOutputStream();
        out = m -> {
            MessageElement body = m.getMessageElement(NAMESPACE, BODY);
            MessageElement count = m.getMessageElement(NAMESPACE, COUNT);
            byte[] octets = body == null ? new byte[0] : body.getBytes(false);
            byte question = (byte) (m.getMessageElement(NAMESPACE, WANT) != null ? 1 : m.getMessageElement(NAMESPACE, ASK) != null ? 2 : 0);
            to.write(ByteBuffer.allocate(13 + octets.length).putInt(octets.length).put(question)
                    .putLong(count == null ? -1 : Long.parseLong(count.toString())).put(octets).array());
            to.flush();
            return true;
        };
        open.countDown();
        Room.daemon("bench read").newThread(() -> {
            try {
                while (true) {
                    int size = in.readInt();
                    byte question = in.readByte();
                    long count = in.readLong();
                    in.readFully(new byte[size]);
                    if (count >= 0) {
                        acked(count);
                    } else if (echoes) {
                        echo(question == 1, question == 2);
                    }
                }
            } catch (Exception e) {
                Events.error("bench socket", e, null);
            }
        }).start();
    }

    private static Message message(byte[] body, String question) {
        Message m = new Message();
        m.addMessageElement(NAMESPACE, new ByteArrayMessageElement(BODY, null, body, null));
        if (question != null) {
            m.addMessageElement(NAMESPACE, new ByteArrayMessageElement(question, null, new byte[1], null));
        }
        return m;
    }

    private void send(Message m) throws Exception {
        long end = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (!out.send(m)) {
            if (System.nanoTime() > end) {
                throw new IOException("the library takes nothing for " + LIMIT_MS + " ms");
            }
            TimeUnit.MICROSECONDS.sleep(200);
        }
    }

    private void heard(Message m, boolean echoes) {
        MessageElement count = m.getMessageElement(NAMESPACE, COUNT);
        if (count != null) {
            acked(Long.parseLong(count.toString()));
        } else if (echoes) {
            echo(m.getMessageElement(NAMESPACE, WANT) != null, m.getMessageElement(NAMESPACE, ASK) != null);
        }
    }

    private void echo(boolean want, boolean ask) {
        try {
            long n = ask ? received.get() : received.incrementAndGet();
            if (!ask && !want) {
                return;
            }
            open.await();
            Message back = new Message();
            back.addMessageElement(NAMESPACE, new ByteArrayMessageElement(COUNT, null, Long.toString(n).getBytes("US-ASCII"), null));
            send(back);
        } catch (Throwable e) {
            Events.error("bench echo", e, null);
        }
    }

    private void acked(long n) {
        counted.accumulateAndGet(n, Math::max);
        acks.release();
    }

    /** Pairs of a message and its acknowledgement, one after the other; the first are not counted. It takes no longer than msMost. */
    private void ping(int size, int warm, int series, int pairs, int msMost) throws Exception {
        byte[] body = new byte[size];
        int lost = 0;
        List<Double> means = new ArrayList<>();
        List<Double> all = new ArrayList<>();
        acks.drainPermits();
        long end = System.nanoTime() + msMost * 1_000_000L / 3;
        int warmed = 0;
        for (; warmed < warm && lost <= MOST_LOST && System.nanoTime() < end; warmed++) {
            if (!pairOnce(body)) {
                lost++;
            }
        }
        for (int s = 0; s < series && lost <= MOST_LOST; s++) {
            double sum = 0;
            int n = 0;
            end = System.nanoTime() + msMost * 1_000_000L / series;
            while (n < pairs && lost <= MOST_LOST && (n == 0 || System.nanoTime() < end)) {
                long began = System.nanoTime();
                if (!pairOnce(body)) {
                    lost++;
                    continue;
                }
                double ms = (System.nanoTime() - began) / 1e6;
                sum += ms;
                n++;
                all.add(ms);
            }
            if (n > 0) {
                means.add(sum / n);
            }
        }
        if (means.isEmpty()) {
            throw new IOException("no answer to " + lost + " messages within " + LIMIT_MS + " ms each");
        }
        Collections.sort(all);
        Events.emit("bench", "name", "ping", "n", all.size(), "warm", warmed, "series", means, "lost", lost, "p99", all.get((int) (all.size() * 0.99)));
    }

    private boolean pairOnce(byte[] body) throws Exception {
        send(message(body, WANT));
        return acks.tryAcquire(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** A stream with at most ahead messages not acknowledged. */
    private void flow(int size, int ms, int ahead, int series) throws Exception {
        byte[] body = new byte[size];
        List<Double> rates = new ArrayList<>();
        long first = settle();
        long sent = 0;
        for (int s = 0; s < series; s++) {
            long base = s == 0 ? first : settle();
            long began = System.nanoTime();
            long end = began + ms * 1_000_000L / series;
            long now = 0;
            long heard = base;
            long patience = System.nanoTime();
            long given = 0; // up: taken for lost, so that the stream goes on
            while (System.nanoTime() < end) {
                if (counted.get() != heard) {
                    heard = counted.get();
                    patience = System.nanoTime();
                }
                if (now - given - (heard - base) >= ahead) {
                    if (System.nanoTime() - patience > LIMIT_MS * 1_000_000) {
                        given = now - (heard - base);
                        patience = System.nanoTime();
                    }
                    acks.tryAcquire(1, TimeUnit.MILLISECONDS);
                    continue;
                }
                now++;
                send(message(body, now % ACK_EVERY == 0 ? WANT : null));
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            rates.add((settle() - base) / seconds);
            sent += now;
        }
        Events.emit("bench", "name", "flow", "n", sent, "series", rates, "lost", Math.max(0, sent - (settle() - first)));
    }

    /** Asks how much has arrived until the answer stays the same. */
    private long settle() throws Exception {
        long last = -1;
        int deaf = 0;
        for (int tries = 0; tries < 100 && deaf <= MOST_LOST; tries++) {
            acks.drainPermits();
            send(message(new byte[1], ASK));
            boolean answered = acks.tryAcquire(LIMIT_MS, TimeUnit.MILLISECONDS);
            deaf = answered ? 0 : deaf + 1;
            TimeUnit.MILLISECONDS.sleep(50);
            if (answered && counted.get() == last) {
                return last;
            }
            last = counted.get();
        }
        throw new IOException("what has arrived does not come to rest");
    }

    /** Messages at once every half second, as in 2004: how long until the last of a burst that comes is acknowledged. */
    private void burst(int size, int many, int messages) throws Exception {
        byte[] body = new byte[size];
        List<Double> took = new ArrayList<>();
        long lost = 0;
        for (int i = 0; i < many; i++) {
            TimeUnit.MILLISECONDS.sleep(500);
            long base = settle();
            long began = System.nanoTime();
            for (int k = 1; k <= messages; k++) {
                send(message(body, WANT));
            }
            long heard = counted.get();
            long last = System.nanoTime();
            while (heard < base + messages && System.nanoTime() < last + BURST_OVER_NS) {
                acks.tryAcquire(1, TimeUnit.MILLISECONDS);
                if (counted.get() != heard) {
                    heard = counted.get();
                    last = System.nanoTime();
                }
            }
            took.add((last - began) / 1e6);
            lost += Math.max(0, base + messages - counted.get());
        }
        Events.emit("bench", "name", "burst", "n", many, "series", took, "lost", lost);
    }

    // The operations of 2004.

    private static String pipeName(int i) {
        return "bench-op-" + i;
    }

    /** Publishes and opens unicast pipes for the other peer to find. */
    private static void serve(Room room, int many) throws Exception {
        for (int i = 0; i < many; i++) {
            ModuleSpecAdvertisement msa = specification(room, pipeName(i));
            room.group().getDiscoveryService().publish(msa);
            room.group().getDiscoveryService().remotePublish(msa);
            KEPT.add(room.group().getPipeService().createInputPipe(msa.getPipeAdvertisement(), e -> { }));
        }
        Events.emit("bench_ready", "name", "serve");
    }

    private static ModuleSpecAdvertisement specification(Room room, String name) throws Exception {
        PipeAdvertisement p = (PipeAdvertisement)
                AdvertisementFactory.newAdvertisement(PipeAdvertisement.getAdvertisementType());
        p.setPipeID(IDFactory.newPipeID(room.group().getPeerGroupID()));
        p.setType(PipeService.UnicastType);
        p.setName(name);
        ModuleSpecAdvertisement msa = (ModuleSpecAdvertisement)
                AdvertisementFactory.newAdvertisement(ModuleSpecAdvertisement.getAdvertisementType());
        msa.setModuleSpecID(IDFactory.newModuleSpecID(IDFactory.newModuleClassID()));
        msa.setName(name);
        msa.setCreator(room.options.name);
        msa.setVersion("1");
        msa.setSpecURI("urn:trk");
        msa.setDescription("bench");
        msa.setPipeAdvertisement(p);
        return msa;
    }

    private static void operations(Room room, int many) throws Exception {
        DiscoveryService discovery = room.group().getDiscoveryService();
        PipeService pipes = room.group().getPipeService();
        List<PipeAdvertisement> found = new ArrayList<>();
        List<ModuleSpecAdvertisement> own = new ArrayList<>();
        for (int i = 0; i < many; i++) {
            own.add(specification(room, "bench-own-" + room.options.name + "-" + i));
        }
        each("get_remote_peers", many, i -> remote(discovery, DiscoveryService.PEER, null, null, 50, null));
        each("get_cached_peers", many, i -> all(discovery.getLocalAdvertisements(DiscoveryService.PEER, null, null)) > 0);
        each("get_remote_pipe", many, i -> remote(discovery, DiscoveryService.ADV, "Name", pipeName(i), 1, found));
        each("get_cached_pipes", many, i -> all(discovery.getLocalAdvertisements(DiscoveryService.ADV, null, null)) > 0);
        each("open_out_pipe", found.size(), i -> {
            pipes.createOutputPipe(found.get(i), RESOLVE_MS);
            return true;
        });
        each("publish", many, i -> {
            discovery.publish(own.get(i));
            discovery.remotePublish(own.get(i));
            return true;
        });
        each("open_in_pipe", many, i -> KEPT.add(pipes.createInputPipe(own.get(i).getPipeAdvertisement(), e -> { })));
        Events.emit("bench", "name", "ops", "n", many);
    }

    private interface Operation {
        boolean run(int i) throws Exception;
    }

    private static void each(String name, int many, Operation operation) throws Exception {
        List<Double> ms = new ArrayList<>();
        int lost = 0;
        for (int i = 0; i < many; i++) {
            long began = System.nanoTime();
            boolean done = false;
            try {
                done = operation.run(i);
            } catch (IOException e) {
                Events.error("bench " + name, e, null);
            }
            if (done) {
                ms.add((System.nanoTime() - began) / 1e6);
            } else {
                lost++;
            }
        }
        List<Double> means = new ArrayList<>();
        int parts = Math.min(PARTS, ms.size());
        for (int p = 0; p < parts; p++) {
            means.add(ms.subList(p * ms.size() / parts, (p + 1) * ms.size() / parts).stream().mapToDouble(v -> v).average().orElse(0));
        }
        Collections.sort(ms);
        Events.emit("bench", "name", name, "n", ms.size(), "lost", lost, "series", means, "p99", ms.isEmpty() ? 0 : ms.get((int) (ms.size() * 0.99)));
    }

    private static int all(Enumeration<?> e) {
        int n = 0;
        while (e != null && e.hasMoreElements()) {
            e.nextElement();
            n++;
        }
        return n;
    }

    /** Asks the group and waits for the first answer. */
    private static boolean remote(DiscoveryService discovery, int type, String attr, String value, int threshold,
            List<PipeAdvertisement> found) throws InterruptedException {
        CountDownLatch answered = new CountDownLatch(1);
        discovery.getRemoteAdvertisements(null, type, attr, value, threshold, new DiscoveryListener() {
            @Override
            public void discoveryEvent(DiscoveryEvent event) {
                if (found != null && answered.getCount() > 0) {
                    Enumeration<?> all = event.getResponse().getAdvertisements();
                    while (all != null && all.hasMoreElements()) {
                        if (all.nextElement() instanceof ModuleSpecAdvertisement msa && msa.getPipeAdvertisement() != null) {
                            found.add(msa.getPipeAdvertisement());
                            break;
                        }
                    }
                }
                answered.countDown();
            }
        });
        return answered.await(LIMIT_MS, TimeUnit.MILLISECONDS);
    }
}
