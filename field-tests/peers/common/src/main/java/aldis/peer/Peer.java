package aldis.peer;

import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import net.jxta.peergroup.PeerGroup;

/** The running peer: its net peer group, the groups it joined, and the commands. */
final class Peer {
    private static final double DEFAULT_REPEAT_S = 30;

    private final Options options;
    private final PeerGroup net;
    private final Room netRoom;
    private final Map<String, Room> rooms = new ConcurrentHashMap<>();
    private final ExecutorService joiner = Executors.newSingleThreadExecutor(Room.daemon("join"));

    Peer(Options options, File home) throws Exception {
        this.options = options;
        net = Library.start(options, home);
        netRoom = new Room(null, options);
        netRoom.begin(net);
    }

    String id() {
        return net.getPeerID().toString();
    }

    void stop() {
        for (Room room : rooms.values()) {
            room.end();
        }
        netRoom.end();
        Library.stop();
    }

    void command(String line) {
        if (line.isEmpty()) {
            return;
        }
        List<String> words = new ArrayList<>(Arrays.asList(line.split("\\s+")));
        String verb = words.remove(0);
        Room room = netRoom;
        int n = words.size();
        if (n >= 2 && words.get(n - 2).equals("group")) {
            String group = words.get(n - 1);
            words = words.subList(0, n - 2);
            room = rooms.get(group);
            if (room == null) {
                Events.error(line + ": group neither made nor joined", null, group);
                return;
            }
        }
        if (verb.equals("adverts")) {
            room.adverts();
            return;
        }
        if (verb.startsWith("bench-") && !words.isEmpty() && Library.bench(room, verb, words)) {
            return;
        }
        if (verb.equals("certificate")) {
            try {
                Events.emit("certificate", "text", Library.certificate(net));
            } catch (Exception e) {
                Events.error(line, e, null);
            }
            return;
        }
        if (words.isEmpty()) {
            Events.error("unknown command or no name: " + line, null, null);
            return;
        }
        String name = words.get(0);
        switch (verb) {
            case "publish" -> {
                String kind = word(words, 1, "propagate");
                if (!kind.equals("propagate") && !kind.equals("unicast") && !kind.equals("secure") && !kind.equals("room")) {
                    Events.error(line + ": propagate, unicast, secure or room", null, null);
                    return;
                }
                room.service(name).publish(kind);
            }
            case "find" -> room.service(name).find(number(words, 1, DEFAULT_REPEAT_S));
            case "listen" -> room.service(name).listen();
            case "open" -> room.service(name).open();
            case "send" -> send(room, line, words);
            case "put" -> room.service(name).put(elements(words.subList(1, words.size())));
            case "stop" -> room.service(name).stop();
            case "trust" -> {
                try {
                    Library.trust(net, name);
                    Events.emit("trusted");
                } catch (Exception e) {
                    Events.error("trust", e, null);
                }
            }
            case "newgroup" -> join(name, true, word(words, 1, ""));
            case "joingroup" -> join(name, false, word(words, 1, ""));
            default -> {
                if (!Streams.command(room, verb, words)) {
                    Events.error("unknown command: " + line, null, null);
                }
            }
        }
    }

    private void send(Room room, String line, List<String> words) {
        int elements = 1;
        List<String> plain = new ArrayList<>();
        for (String w : words) {
            if (w.startsWith("elements=")) {
                elements = Integer.parseInt(w.substring("elements=".length()));
            } else {
                plain.add(w);
            }
        }
        int size = (int) number(plain, 1, 0);
        if (size < Track.MIN_SIZE || size > Track.MAX_SIZE || elements < 1 || elements > Track.MAX_ELEMENTS) {
            Events.error(line + ": SIZE " + Track.MIN_SIZE + " to " + Track.MAX_SIZE + ", elements 1 to "
                    + Track.MAX_ELEMENTS, null, null);
            return;
        }
        room.service(plain.get(0)).send(size, elements, (long) number(plain, 2, 1), number(plain, 3, 0));
    }

    /** Each word is NAME=DATA, or NAME:TYPE=DATA, the data in base 64. */
    private static List<Track.Attachment> elements(List<String> words) {
        List<Track.Attachment> list = new ArrayList<>();
        for (String w : words) {
            String[] part = w.split("=", 2);
            String[] head = part[0].split(":", 2);
            list.add(new Track.Attachment(head[0], head.length > 1 ? head[1] : null, Base64.getDecoder().decode(part[1])));
        }
        return list;
    }

    private void join(String name, boolean publish, String membership) {
        Room room = new Room(name, options);
        if (rooms.putIfAbsent(name, room) != null) {
            Events.error("group is joined already", null, name);
            return;
        }
        netRoom.whenReady(() -> joiner.execute(() -> {
            try {
                PeerGroup group = Library.join(net, name, publish, options.rdv, membership);
                Events.emit("joined", "name", name, "id", group.getPeerGroupID().toString(), "kind", Library.membership(group));
                room.begin(group);
            } catch (Throwable e) {
                Events.error("join", e, name);
            }
        }));
    }

    private static String word(List<String> words, int i, String absent) {
        return i < words.size() ? words.get(i) : absent;
    }

    private static double number(List<String> words, int i, double absent) {
        return i < words.size() ? Double.parseDouble(words.get(i)) : absent;
    }
}
