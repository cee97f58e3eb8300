package aldis.peer;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import net.jxta.discovery.DiscoveryEvent;
import net.jxta.discovery.DiscoveryListener;
import net.jxta.discovery.DiscoveryService;
import net.jxta.document.AdvertisementFactory;
import net.jxta.endpoint.ByteArrayMessageElement;
import net.jxta.endpoint.Message;
import net.jxta.endpoint.MessageElement;
import net.jxta.id.IDFactory;
import net.jxta.pipe.InputPipe;
import net.jxta.pipe.OutputPipe;
import net.jxta.pipe.PipeMsgEvent;
import net.jxta.pipe.PipeService;
import net.jxta.protocol.ModuleSpecAdvertisement;
import net.jxta.protocol.PipeAdvertisement;

/**
 * Measures from inside the peer, so that neither standard input nor output is in the figures: the peer operations of the
 * performance model of 2004, and message and acknowledgement pairs and streams on a unicast pipe.
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
    private static final int ACK_EVERY = 16;

    private static final ExecutorService HAND = Executors.newSingleThreadExecutor(Room.daemon("bench"));

    // Of the pair of pipes; set on HAND or a service's thread before "bench_ready" is said.
    private static volatile OutputPipe out;
    private static final CountDownLatch OPEN = new CountDownLatch(2);
    private static final List<InputPipe> INPUTS = Collections.synchronizedList(new ArrayList<>());
    private static final AtomicLong RECEIVED = new AtomicLong();
    private static final AtomicLong ACKED = new AtomicLong();
    private static final Semaphore ACKS = new Semaphore(0);

    private Bench() {
    }

    /** Answers false when the command is none of these. */
    static boolean command(Room room, String verb, List<String> words) {
        switch (verb) {
            case "bench-echo" -> pair(room, words.get(0), words.get(1), Bench::echo);
            case "bench-pair" -> pair(room, words.get(1), words.get(0), Bench::acked);
            case "bench-ping" -> run(() -> ping(number(words, 0), number(words, 1), number(words, 2), number(words, 3)));
            case "bench-flow" -> run(() -> flow(number(words, 0), number(words, 1), number(words, 2)));
            case "bench-burst" -> run(() -> burst(number(words, 0), number(words, 1), number(words, 2)));
            case "bench-serve" -> room.whenReady(() -> run(() -> serve(room, number(words, 0))));
            case "bench-ops" -> room.whenReady(() -> run(() -> operations(room, number(words, 0))));
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

    private static void run(Work work) {
        HAND.execute(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                Events.error("bench", e, null);
            }
        });
    }

    // A pair of pipes: mine to hear on, theirs to send on.

    private static void pair(Room room, String mine, String theirs, net.jxta.pipe.PipeMsgListener listener) {
        room.service(mine).provide(adv -> {
            try {
                INPUTS.add(room.group().getPipeService().createInputPipe(adv, listener));
                OPEN.countDown();
            } catch (IOException e) {
                Events.error("bench " + mine, e, null);
            }
        });
        room.service(theirs).find(1);
        room.service(theirs).withPipe(adv -> run(() -> {
            while (out == null) {
                try {
                    out = room.group().getPipeService().createOutputPipe(adv, RESOLVE_MS);
                } catch (IOException e) {
                    Events.error("bench " + theirs + ": not resolved, trying again", e, null);
                }
            }
            OPEN.countDown();
            OPEN.await();
            Events.emit("bench_ready", "name", mine);
        }));
    }

    private static Message message(byte[] body, String question) {
        Message m = new Message();
        m.addMessageElement(NAMESPACE, new ByteArrayMessageElement(BODY, null, body, null));
        if (question != null) {
            m.addMessageElement(NAMESPACE, new ByteArrayMessageElement(question, null, new byte[1], null));
        }
        return m;
    }

    /** A full queue of the library answers false: that is no loss yet. */
    private static void send(Message m) throws IOException, InterruptedException {
        long end = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (!out.send(m)) {
            if (System.nanoTime() > end) {
                throw new IOException("the library takes nothing for " + LIMIT_MS + " ms");
            }
            TimeUnit.MICROSECONDS.sleep(200);
        }
    }

    private static void echo(PipeMsgEvent event) {
        try {
            Message m = event.getMessage();
            boolean ask = m.getMessageElement(NAMESPACE, ASK) != null;
            long n = ask ? RECEIVED.get() : RECEIVED.incrementAndGet();
            if (!ask && m.getMessageElement(NAMESPACE, WANT) == null) {
                return;
            }
            OPEN.await();
            Message back = new Message();
            back.addMessageElement(NAMESPACE, new ByteArrayMessageElement(COUNT, null, Long.toString(n).getBytes("US-ASCII"), null));
            send(back);
        } catch (Throwable e) {
            Events.error("bench echo", e, null);
        }
    }

    private static void acked(PipeMsgEvent event) {
        MessageElement count = event.getMessage().getMessageElement(NAMESPACE, COUNT);
        if (count != null) {
            long n = Long.parseLong(count.toString());
            ACKED.accumulateAndGet(n, Math::max);
            ACKS.release();
        }
    }

    /** Pairs of a message and its acknowledgement, one after the other; the first are not counted. */
    private static void ping(int size, int warm, int series, int pairs) throws Exception {
        byte[] body = new byte[size];
        int lost = 0;
        List<Double> means = new ArrayList<>();
        List<Double> all = new ArrayList<>();
        ACKS.drainPermits();
        for (int i = 0; i < warm; i++) {
            if (!pairOnce(body)) {
                lost++;
            }
        }
        for (int s = 0; s < series; s++) {
            double sum = 0;
            for (int i = 0; i < pairs; i++) {
                long began = System.nanoTime();
                if (!pairOnce(body)) {
                    lost++;
                    continue;
                }
                double ms = (System.nanoTime() - began) / 1e6;
                sum += ms;
                all.add(ms);
            }
            means.add(sum / pairs);
        }
        Collections.sort(means);
        Collections.sort(all);
        Events.emit("bench", "name", "ping", "n", all.size(), "ms", means.get(means.size() / 2), "lost", lost,
                "p99", all.isEmpty() ? 0 : all.get((int) (all.size() * 0.99)));
    }

    private static boolean pairOnce(byte[] body) throws Exception {
        send(message(body, WANT));
        return ACKS.tryAcquire(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** A stream with at most ahead messages not acknowledged. */
    private static void flow(int size, int ms, int ahead) throws Exception {
        byte[] body = new byte[size];
        long base = settle();
        long began = System.nanoTime();
        long end = began + ms * 1_000_000L;
        long sent = 0;
        long heard = base;
        long patience = System.nanoTime();
        long given = 0; // up: taken for lost, so that the stream goes on
        while (System.nanoTime() < end) {
            if (ACKED.get() != heard) {
                heard = ACKED.get();
                patience = System.nanoTime();
            }
            if (sent - given - (heard - base) >= ahead) {
                if (System.nanoTime() - patience > LIMIT_MS * 1_000_000) {
                    given = sent - (heard - base);
                    patience = System.nanoTime();
                }
                ACKS.tryAcquire(1, TimeUnit.MILLISECONDS);
                continue;
            }
            sent++;
            send(message(body, sent % ACK_EVERY == 0 ? WANT : null));
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        long there = settle() - base;
        Events.emit("bench", "name", "flow", "n", sent, "rate", there / seconds, "lost", Math.max(0, sent - there));
    }

    /** Asks how much has arrived until the answer stays the same. */
    private static long settle() throws Exception {
        long last = -1;
        for (int tries = 0; tries < 100; tries++) {
            ACKS.drainPermits();
            send(message(new byte[1], ASK));
            boolean answered = ACKS.tryAcquire(LIMIT_MS, TimeUnit.MILLISECONDS);
            TimeUnit.MILLISECONDS.sleep(100);
            if (answered && ACKED.get() == last) {
                return last;
            }
            last = ACKED.get();
        }
        throw new IOException("what has arrived does not come to rest");
    }

    /** Messages at once every half second, as in 2004: how long until the last of a burst that comes is acknowledged. */
    private static void burst(int size, int many, int messages) throws Exception {
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
            long heard = ACKED.get();
            long last = System.nanoTime();
            while (heard < base + messages && System.nanoTime() < last + BURST_OVER_NS) {
                ACKS.tryAcquire(1, TimeUnit.MILLISECONDS);
                if (ACKED.get() != heard) {
                    heard = ACKED.get();
                    last = System.nanoTime();
                }
            }
            took.add((last - began) / 1e6);
            lost += Math.max(0, base + messages - ACKED.get());
        }
        Collections.sort(took);
        Events.emit("bench", "name", "burst", "n", many, "ms", took.get(took.size() / 2), "lost", lost);
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
            INPUTS.add(room.group().getPipeService().createInputPipe(msa.getPipeAdvertisement(), e -> { }));
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
        each("open_in_pipe", many, i -> INPUTS.add(pipes.createInputPipe(own.get(i).getPipeAdvertisement(), e -> { })));
        Events.emit("bench", "name", "ops", "n", many);
    }

    private interface Operation {
        boolean run(int i) throws Exception;
    }

    private static void each(String name, int many, Operation operation) throws Exception {
        double[] ms = new double[many];
        double sum = 0;
        int lost = 0;
        int good = 0;
        for (int i = 0; i < many; i++) {
            long began = System.nanoTime();
            boolean done = false;
            try {
                done = operation.run(i);
            } catch (IOException e) {
                Events.error("bench " + name, e, null);
            }
            if (!done) {
                lost++;
                continue;
            }
            ms[good] = (System.nanoTime() - began) / 1e6;
            sum += ms[good++];
        }
        Arrays.sort(ms, 0, good);
        Events.emit("bench", "name", name, "n", good, "lost", lost, "ms", good == 0 ? 0 : sum / good,
                "p50", good == 0 ? 0 : ms[good / 2], "p99", good == 0 ? 0 : ms[(int) (good * 0.99)]);
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
