package aldis.peer;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;

/** What the command line said. Loads no class of the JXTA library. */
final class Options {
    static final class Wrong extends Exception {
        Wrong(String text) {
            super(text);
        }
    }

    String name;
    String host;
    int port;
    final List<URI> seeds = new ArrayList<>();
    boolean rdv;
    boolean unsigned;
    boolean http;
    boolean multicast;
    boolean adhoc;
    String home;

    static Options parse(String[] args) throws Wrong {
        Options o = new Options();
        for (int i = 0; i < args.length; i++) {
            String key = args[i];
            if (key.equals("--unsigned")) {
                o.unsigned = true;
                continue;
            }
            if (key.equals("--multicast") || key.equals("--adhoc")) {
                o.multicast = true;
                o.adhoc |= key.equals("--adhoc");
                continue;
            }
            if (key.equals("--http")) {
                o.http = true;
                continue;
            }
            if (i + 1 == args.length) {
                throw new Wrong("no value for " + key);
            }
            o.set(key, args[++i]);
        }
        if (o.name == null || o.host == null || o.port == 0) {
            throw new Wrong("--name, --host and --port are needed");
        }
        if (o.seeds.isEmpty() && !o.rdv && !o.multicast) {
            throw new Wrong("an edge needs --seed or --multicast");
        }
        return o;
    }

    private void set(String key, String value) throws Wrong {
        switch (key) {
            case "--name" -> {
                if (!value.matches("[A-Za-z0-9._-]{1,24}")) {
                    throw new Wrong("--name: 1 to 24 letters, digits, dots, dashes: " + value);
                }
                name = value;
            }
            case "--host" -> host = value;
            case "--port" -> {
                if (!value.matches("[0-9]{1,5}") || Integer.parseInt(value) < 1 || Integer.parseInt(value) > 65535) {
                    throw new Wrong("--port: 1 to 65535: " + value);
                }
                port = Integer.parseInt(value);
            }
            case "--seed" -> {
                try {
                    seeds.add(URI.create(value));
                } catch (IllegalArgumentException e) {
                    throw new Wrong("--seed: " + e.getMessage());
                }
            }
            case "--role" -> {
                if (!value.equals("edge") && !value.equals("rdv")) {
                    throw new Wrong("--role: edge or rdv: " + value);
                }
                rdv = value.equals("rdv");
            }
            case "--home" -> home = value;
            default -> throw new Wrong("unknown option " + key);
        }
    }
}
