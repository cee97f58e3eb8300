package aldis.peer;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Collection;

/** Writes one JSON object a line to the process's standard output, whatever the library does with System.out. */
final class Events {
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    private Events() {
    }

    /** Milliseconds since 1970 UTC with three decimals. */
    static String now() {
        Instant i = Instant.now();
        long micros = i.getEpochSecond() * 1_000_000L + i.getNano() / 1000;
        long rest = micros % 1000;
        return micros / 1000 + (rest < 10 ? ".00" : rest < 100 ? ".0" : ".") + rest;
    }

    /** Emits an event now. members are name, value, name, value; a null value leaves its member out. */
    static void emit(String ev, Object... members) {
        emitAt(now(), ev, members);
    }

    static void emitAt(String t, String ev, Object... members) {
        StringBuilder b = new StringBuilder(160);
        b.append("{\"t\":").append(t).append(",\"ev\":");
        value(b, ev);
        for (int i = 0; i + 1 < members.length; i += 2) {
            if (members[i + 1] != null) {
                b.append(',');
                value(b, members[i]);
                b.append(':');
                value(b, members[i + 1]);
            }
        }
        byte[] line = b.append("}\n").toString().getBytes(StandardCharsets.UTF_8);
        synchronized (OUT) {
            try {
                OUT.write(line);
            } catch (IOException e) {
                // Whoever started us is gone: nobody is left to tell, and nobody would end us.
                Runtime.getRuntime().halt(1);
            }
        }
    }

    static void error(String text, Throwable cause, String group) {
        if (cause != null) {
            cause.printStackTrace(); // to library.log
        }
        emit("error", "text", cause == null ? text : text + ": " + cause, "group", group);
    }

    /** A value that is written as it stands, for numbers that are text already. */
    record Raw(String text) {
    }

    private static void value(StringBuilder b, Object v) {
        if (v instanceof Number || v instanceof Boolean) {
            b.append(v);
        } else if (v instanceof Raw raw) {
            b.append(raw.text());
        } else if (v instanceof Collection<?> all) {
            b.append('[');
            String comma = "";
            for (Object one : all) {
                b.append(comma);
                value(b, one);
                comma = ",";
            }
            b.append(']');
        } else {
            string(b, v.toString());
        }
    }

    private static void string(StringBuilder b, String s) {
        b.append('"');
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        b.append('"');
    }
}
