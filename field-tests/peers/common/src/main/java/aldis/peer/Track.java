package aldis.peer;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;

/**
 * The application's messages: track text that a receiver can make again from its first four fields, so that a changed
 * octet is seen. Layout in README.md.
 */
final class Track {
    static final int MIN_SIZE = 64;
    static final int MAX_SIZE = 4 << 20;
    static final int MAX_ELEMENTS = 64;

    private static final int CRC_LENGTH = 8;
    private static final String[] TYPES = {
        "image/png", "application/x-trk-plot", "text/plain", "application/zip",
    };

    /** A further element beside the body. A null type is the library's application/octet-stream. */
    record Attachment(String name, String type, byte[] data) {
    }

    private Track() {
    }

    static byte[] body(String from, long seq, String tSent, int size, List<Attachment> attachments) {
        byte[] body = new byte[size];
        byte[] text = text(from, seq, tSent, size - CRC_LENGTH);
        System.arraycopy(text, 0, body, 0, text.length);
        byte[] crc = crc(body, attachments).getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(crc, 0, body, size - CRC_LENGTH, CRC_LENGTH);
        return body;
    }

    static List<Attachment> attachments(String from, long seq, int count) {
        List<Attachment> all = new ArrayList<>();
        Random random = random(from, -seq);
        for (int i = 1; i <= count; i++) {
            byte[] data = new byte[random.nextInt(200)];
            random.nextBytes(data);
            // Every fifth has no type: the library then writes none.
            String type = i % 5 == 0 ? null : TYPES[(i - 1) % TYPES.length];
            all.add(new Attachment("att" + i, type, data));
        }
        return all;
    }

    /** CRC-32, 8 hex digits, over the body but its last 8 octets, then each attachment's name, type and data. */
    static String crc(byte[] body, List<Attachment> attachments) {
        CRC32 crc = new CRC32();
        crc.update(body, 0, Math.max(0, body.length - CRC_LENGTH));
        for (Attachment a : attachments) {
            crc.update(a.name().getBytes(StandardCharsets.UTF_8));
            crc.update((a.type() == null ? "application/octet-stream" : a.type()).getBytes(StandardCharsets.UTF_8));
            crc.update(a.data());
        }
        return String.format("%08x", crc.getValue());
    }

    /** What a receiver found in a message. */
    record Seen(String from, long seq, String tSent, String crc, boolean ok) {
    }

    static Seen check(byte[] body, List<Attachment> attachments) {
        String text = new String(body, StandardCharsets.ISO_8859_1);
        String[] field = text.split(";", 5);
        String crc = body.length < CRC_LENGTH ? "" : text.substring(body.length - CRC_LENGTH);
        if (body.length < MIN_SIZE || field.length < 5 || !field[0].equals("TRK")
                || !field[2].matches("[0-9]{1,15}") || !field[3].matches("[0-9]{1,15}\\.[0-9]{3}")) {
            return new Seen("?", 0, "0", crc, false);
        }
        long seq = Long.parseLong(field[2]);
        byte[] want = text(field[1], seq, field[3], body.length - CRC_LENGTH);
        boolean same = text.regionMatches(0, new String(want, StandardCharsets.ISO_8859_1), 0, want.length);
        return new Seen(field[1], seq, field[3], crc, same && crc.equals(crc(body, attachments)));
    }

    /** The count of a message whose elements another program has chosen. */
    static long number(List<Attachment> elements) {
        String text = text(elements, "seq");
        return text.matches("[0-9]{1,15}") ? Long.parseLong(text) : 0;
    }

    /** What an event says of such a message; tSent is null where it was received, and is then what the message says. */
    static List<Object> members(List<Attachment> elements, String tSent) {
        int size = 0;
        CRC32 body = new CRC32();
        for (Attachment a : elements) {
            size += a.data().length;
            if (a.name().equals("body")) {
                body.update(a.data());
            }
        }
        List<Object> list = new ArrayList<>(List.of("seq", number(elements), "size", size,
                "crc", crc(new byte[0], elements), "elements", elements.size()));
        if (tSent == null) {
            String ts = text(elements, "ts");
            list.addAll(List.of("from", text(elements, "from"),
                    "ok", text(elements, "crc").equals(String.format("%08x", body.getValue())),
                    "t_sent", new Events.Raw(ts.matches("[0-9]{1,15}") ? ts : "0")));
        }
        return list;
    }

    private static String text(List<Attachment> elements, String name) {
        for (Attachment a : elements) {
            if (a.name().equals(name)) {
                return new String(a.data(), StandardCharsets.UTF_8);
            }
        }
        return "";
    }

    private static Random random(String from, long seq) {
        return new Random(from.hashCode() * 1_000_003L + seq);
    }

    private static byte[] text(String from, long seq, String tSent, int length) {
        Random base = random(from, 0);
        Random random = random(from, seq);
        StringBuilder b = new StringBuilder(length + 64);
        b.append("TRK;").append(from).append(';').append(seq).append(';').append(tSent).append(';');
        // The sender's own track goes on steadily; the contacts it reports change from message to message.
        long lat = 580_000 + base.nextInt(40_000) + seq * 3;
        long lon = 20_000 + base.nextInt(80_000) + seq * 5;
        position(b, lat % 900_000, lon % 1_800_000, 450 + base.nextInt(900) + random.nextInt(20), 80 + random.nextInt(60));
        while (b.length() < length) {
            b.append("T").append(1000 + random.nextInt(9000)).append(';');
            position(b, (lat + random.nextInt(20_000)) % 900_000, (lon + random.nextInt(40_000)) % 1_800_000,
                    random.nextInt(3600), random.nextInt(350));
            b.append("AUFHSN".charAt(random.nextInt(6))).append(random.nextInt(10)).append(';');
        }
        return b.substring(0, length).getBytes(StandardCharsets.US_ASCII);
    }

    private static void position(StringBuilder b, long lat, long lon, int course, int speed) {
        b.append('N');
        decimal(b, lat, 10_000, 2);
        b.append(";E");
        decimal(b, lon, 10_000, 3);
        b.append(";C");
        decimal(b, course, 10, 3);
        b.append(";S");
        decimal(b, speed, 10, 2);
        b.append(';');
    }

    private static void decimal(StringBuilder b, long value, int scale, int digits) {
        pad(b, value / scale, digits);
        b.append('.');
        pad(b, value % scale, scale == 10 ? 1 : 4);
    }

    private static void pad(StringBuilder b, long value, int digits) {
        String s = Long.toString(value);
        for (int i = s.length(); i < digits; i++) {
            b.append('0');
        }
        b.append(s);
    }
}
