package aldis.peer;

import java.util.List;

/** 2.2 has no reliable JxtaBiDiPipe, and its sockets are of another make: no stream commands. */
final class Streams {
    private Streams() {
    }

    static boolean command(Room room, String verb, List<String> words) {
        return false;
    }
}
