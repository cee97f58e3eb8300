package aldis.peer;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import net.jxta.discovery.DiscoveryService;
import net.jxta.document.AdvertisementFactory;
import net.jxta.document.MimeMediaType;
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

/** One service by name: the module specification, its pipe, and what we do with them. */
final class Service {
    private static final String NAMESPACE = "trk";
    private static final String BODY = "body";
    /** Of messages whose elements another program has chosen. */
    private static final String OWN = "own";
    private static final int ANSWERS_WANTED = 10;
    private static final long RESOLVE_MS = 15_000;

    private final Room room;
    private final String name;
    /** Library calls of this service, in order. They may block for seconds, so each service has its own thread. */
    private final ScheduledExecutorService hand;

    // Guarded by this.
    private PipeAdvertisement pipe;
    private boolean wanted;
    private boolean told;
    private final List<Runnable> whenKnown = new ArrayList<>();

    // Used on hand only.
    private InputPipe input;
    private OutputPipe output;
    private int queries;
    private boolean asking;
    private long seq;

    private volatile int sendGeneration;

    Service(Room room, String name) {
        this.room = room;
        this.name = name;
        hand = Executors.newSingleThreadScheduledExecutor(Room.daemon("service " + name));
    }

    void end() {
        hand.shutdownNow();
    }

    void publish(String kind) {
        ready(() -> {
            announce(kind);
            openInput();
        });
    }

    private void announce(String kind) throws Exception {
        ModuleSpecAdvertisement msa = specification(kind);
        DiscoveryService discovery = room.group().getDiscoveryService();
        discovery.publish(msa);
        discovery.remotePublish(msa);
        emit("published", "id", msa.getPipeAdvertisement().getPipeID().toString(), "kind", kind);
        synchronized (this) {
            told = true; // our own is not discovered
        }
        known(msa.getPipeAdvertisement());
    }

    /** Publishes a pipe of that kind that the caller opens himself. */
    void provide(String kind, Consumer<PipeAdvertisement> then) {
        ready(() -> {
            announce(kind);
            then.accept(pipe());
        });
    }

    /** Runs then with the pipe when it is known; a question is not implied. */
    void withPipe(Consumer<PipeAdvertisement> then) {
        want(() -> ready(() -> then.accept(pipe())));
    }

    void find(double repeatS) {
        want(null);
        ready(() -> {
            if (!asking && !here()) {
                asking = true;
                ask(Math.max(1, (long) (repeatS * 1000)));
            }
        });
    }

    void listen() {
        emit("listening");
        want(() -> ready(this::openInput));
    }

    void open() {
        want(() -> ready(this::openOutput));
    }

    /** Sends count messages (0: until stopped) every everyS seconds, the first now. */
    void send(int size, int elements, long count, double everyS) {
        int generation = sendGeneration;
        want(() -> ready(() -> {
            openOutput();
            sendAt(generation, size, elements, count == 0 ? Long.MAX_VALUE : count,
                    (long) (everyS * 1e9), System.nanoTime());
        }));
    }

    void stop() {
        sendGeneration++;
    }

    /** The pipe is known, from whatever source. Called on the library's threads too. */
    synchronized void known(PipeAdvertisement found) {
        if (pipe == null) {
            pipe = found;
        }
        tell();
        whenKnown.forEach(Runnable::run);
        whenKnown.clear();
    }

    private synchronized void want(Runnable then) {
        wanted = true;
        if (pipe != null) {
            tell();
            if (then != null) {
                then.run();
            }
        } else if (then != null) {
            whenKnown.add(then);
        }
    }

    private void tell() {
        if (wanted && !told) {
            told = true;
            emit("discovered", "id", pipe.getPipeID().toString(), "kind", kind(pipe));
        }
    }

    private boolean here() throws Exception {
        synchronized (this) {
            if (pipe != null) {
                return true;
            }
        }
        for (ModuleSpecAdvertisement msa : room.local(name)) {
            if (msa.getPipeAdvertisement() != null) {
                known(msa.getPipeAdvertisement());
                return true;
            }
        }
        return false;
    }

    private void ask(long repeatMs) {
        synchronized (this) {
            if (pipe != null) {
                asking = false;
                return;
            }
        }
        emit("query", "n", ++queries);
        room.group().getDiscoveryService()
                .getRemoteAdvertisements(null, DiscoveryService.ADV, "Name", name, ANSWERS_WANTED);
        hand.schedule(guarded(() -> ask(repeatMs)), repeatMs, TimeUnit.MILLISECONDS);
    }

    private ModuleSpecAdvertisement specification(String kind) throws Exception {
        // With a kept home directory a restarted peer goes on with the pipe its friends know.
        for (ModuleSpecAdvertisement msa : room.local(name)) {
            if (room.options.name.equals(msa.getCreator()) && msa.getPipeAdvertisement() != null
                    && kind(msa.getPipeAdvertisement()).equals(kind.equals("room") ? "propagate" : kind)) {
                return msa;
            }
        }
        PipeAdvertisement p = (PipeAdvertisement)
                AdvertisementFactory.newAdvertisement(PipeAdvertisement.getAdvertisementType());
        p.setPipeID(kind.equals("room") ? Library.pipe(name) : IDFactory.newPipeID(room.group().getPeerGroupID()));
        p.setType(switch (kind) {
            case "unicast" -> PipeService.UnicastType;
            case "secure" -> PipeService.UnicastSecureType;
            default -> PipeService.PropagateType;
        });
        p.setName(name);
        ModuleSpecAdvertisement msa = (ModuleSpecAdvertisement)
                AdvertisementFactory.newAdvertisement(ModuleSpecAdvertisement.getAdvertisementType());
        msa.setModuleSpecID(IDFactory.newModuleSpecID(IDFactory.newModuleClassID()));
        msa.setName(name);
        msa.setCreator(room.options.name);
        msa.setVersion("1");
        msa.setSpecURI("urn:trk");
        msa.setDescription("tracks of " + room.options.name);
        msa.setPipeAdvertisement(p);
        return msa;
    }

    private void openInput() throws IOException {
        if (input == null) {
            input = room.group().getPipeService().createInputPipe(pipe(), this::received);
        }
        emit("pipe_ready");
    }

    private void openOutput() throws IOException {
        while (output == null) {
            try {
                tryOpenOutput();
            } catch (IOException e) {
                if (hand.isShutdown() || kind(pipe()).equals("propagate")) {
                    throw e;
                }
                Events.error("open " + name + ": not resolved, trying again", e, room.groupName);
            }
        }
    }

    private void tryOpenOutput() throws IOException {
        if (output == null) {
            output = room.group().getPipeService().createOutputPipe(pipe(), RESOLVE_MS);
            emit("opened");
        }
    }

    private void sendAt(int generation, int size, int elements, long left, long everyNs, long due) {
        if (left == 0 || generation != sendGeneration) {
            return;
        }
        sendOne(size, elements);
        // The rate is the clock's, not the library's: a send that took long does not move the next.
        long next = due + everyNs;
        hand.schedule(guarded(() -> sendAt(generation, size, elements, left - 1, everyNs, next)),
                Math.max(0, next - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    /** Sends one message of these elements, now. */
    void put(List<Track.Attachment> elements) {
        want(() -> ready(() -> {
            openOutput();
            String now = Events.now();
            transmit(Track.number(elements), message(OWN, elements), Track.members(elements, now), now);
        }));
    }

    private void sendOne(int size, int elements) {
        long n = ++seq;
        List<Track.Attachment> attachments = Track.attachments(room.options.name, n, elements - 1);
        String now = Events.now();
        byte[] body = Track.body(room.options.name, n, now, size, attachments);
        List<Track.Attachment> all = new ArrayList<>(attachments);
        all.add(0, new Track.Attachment(BODY, null, body));
        transmit(n, message(NAMESPACE, all), List.of("seq", n, "size", size, "crc", Track.crc(body, attachments), "elements", elements), now);
    }

    private static Message message(String namespace, List<Track.Attachment> elements) {
        Message message = new Message();
        for (Track.Attachment a : elements) {
            message.addMessageElement(namespace, new ByteArrayMessageElement(a.name(),
                    a.type() == null ? null : new MimeMediaType(a.type()), a.data(), null));
        }
        return message;
    }

    private void transmit(long n, Message message, List<Object> members, String now) {
        try {
            tryOpenOutput();
            if (!output.send(message)) {
                Events.error("send " + name + " " + n + ": not sent", null, room.groupName);
                return;
            }
            tellAt(now, "sent", members);
        } catch (Throwable e) {
            Events.error("send " + name + " " + n, e, room.groupName);
            if (output != null && !kind(pipe()).equals("propagate")) {
                // The library closes a unicast pipe whose way is lost; the next message opens it anew.
                output.close();
                output = null;
            }
        }
    }

    private void received(PipeMsgEvent event) {
        String now = Events.now();
        try {
            List<Track.Attachment> elements = elements(event.getMessage(), OWN);
            if (!elements.isEmpty()) {
                tellAt(now, "received", Track.members(elements, null));
                return;
            }
            elements = elements(event.getMessage(), NAMESPACE);
            int at = 0;
            while (at < elements.size() && !elements.get(at).name().equals(BODY)) {
                at++;
            }
            if (at == elements.size()) {
                Events.error("received on " + name + " a message without " + BODY, null, room.groupName);
                return;
            }
            Track.Attachment body = elements.remove(at);
            boolean ok = body.type() == null || body.type().equals("application/octet-stream");
            Track.Seen seen = Track.check(body.data(), elements);
            tellAt(now, "received", List.of("from", seen.from(), "seq", seen.seq(), "size", body.data().length,
                    "crc", seen.crc(), "elements", elements.size() + 1, "ok", ok && seen.ok(), "t_sent", new Events.Raw(seen.tSent())));
        } catch (Throwable e) {
            Events.error("received on " + name, e, room.groupName);
        }
    }

    private static List<Track.Attachment> elements(Message message, String namespace) {
        List<Track.Attachment> list = new ArrayList<>();
        Message.ElementIterator all = message.getMessageElementsOfNamespace(namespace);
        while (all.hasNext()) {
            MessageElement e = (MessageElement) all.next();
            list.add(new Track.Attachment(e.getElementName(), e.getMimeType() == null ? null : e.getMimeType().toString(), e.getBytes(true)));
        }
        return list;
    }

    private synchronized PipeAdvertisement pipe() {
        return pipe;
    }

    private static String kind(PipeAdvertisement p) {
        if (PipeService.UnicastSecureType.equals(p.getType())) {
            return "secure";
        }
        return PipeService.UnicastType.equals(p.getType()) ? "unicast" : "propagate";
    }

    private void emit(String ev, Object... members) {
        tellAt(Events.now(), ev, Arrays.asList(members));
    }

    private void tellAt(String now, String ev, List<Object> members) {
        List<Object> all = new ArrayList<>(members);
        all.addAll(0, List.of("name", name));
        all.add("group");
        all.add(room.groupName);
        Events.emitAt(now, ev, all.toArray());
    }

    private interface Work {
        void run() throws Exception;
    }

    private void ready(Work work) {
        room.whenReady(() -> {
            if (!hand.isShutdown()) {
                hand.execute(guarded(work));
            }
        });
    }

    private Runnable guarded(Work work) {
        return () -> {
            try {
                work.run();
            } catch (Throwable e) {
                Events.error(name, e, room.groupName);
            }
        };
    }
}
