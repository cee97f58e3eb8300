package aldis.peer;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import net.jxta.discovery.DiscoveryEvent;
import net.jxta.discovery.DiscoveryService;
import net.jxta.peergroup.PeerGroup;
import net.jxta.protocol.ModuleSpecAdvertisement;
import net.jxta.rendezvous.RendezVousService;
import net.jxta.rendezvous.RendezvousEvent;

/** One peer group as the peer uses it: its rendezvous, its discovery and the services in it by name. */
final class Room {
    /** Both libraries lose what is sent in the same millisecond as they report the connection. */
    private static final long SETTLE_MS = 300;

    final String groupName;
    final Options options;
    private final Map<String, Service> services = new ConcurrentHashMap<>();
    private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(daemon("room"));
    private List<Runnable> waiting = new ArrayList<>();
    private boolean connected;
    private boolean settled;
    private volatile PeerGroup group;

    Room(String groupName, Options options) {
        this.groupName = groupName;
        this.options = options;
    }

    static ThreadFactory daemon(String name) {
        return r -> {
            Thread t = new Thread(r, name);
            t.setDaemon(true);
            return t;
        };
    }

    PeerGroup group() {
        return group;
    }

    void begin(PeerGroup g) {
        group = g;
        g.getDiscoveryService().addDiscoveryListener(this::discovered);
        RendezVousService rdv = g.getRendezVousService();
        rdv.addListener(this::rendezvous);
        if (options.rdv && options.seeds.isEmpty() || options.adhoc) {
            settle();
        } else if (rdv.isConnectedToRendezVous()) {
            // Connected before we listened.
            connected(null);
        }
    }

    void end() {
        timer.shutdownNow();
        services.values().forEach(Service::end);
    }

    Service service(String name) {
        return services.computeIfAbsent(name, n -> new Service(this, n));
    }

    /** Runs r on the room's thread once the rendezvous is connected and had time to settle. */
    synchronized void whenReady(Runnable r) {
        if (settled) {
            timer.execute(r);
        } else {
            waiting.add(r);
        }
    }

    void adverts() {
        timer.execute(() -> {
            List<String> names = new ArrayList<>();
            try {
                if (group != null) {
                    for (ModuleSpecAdvertisement msa : local(null)) {
                        names.add(String.valueOf(msa.getName()));
                    }
                }
                Events.emit("adverts", "names", names, "group", groupName);
            } catch (Exception e) {
                Events.error("adverts", e, groupName);
            }
        });
    }

    /** The module specifications in the local cache, all of them or those of one name. */
    List<ModuleSpecAdvertisement> local(String name) throws Exception {
        List<ModuleSpecAdvertisement> found = new ArrayList<>();
        Enumeration<?> all = group.getDiscoveryService()
                .getLocalAdvertisements(DiscoveryService.ADV, name == null ? null : "Name", name);
        while (all != null && all.hasMoreElements()) {
            if (all.nextElement() instanceof ModuleSpecAdvertisement msa) {
                found.add(msa);
            }
        }
        return found;
    }

    private void rendezvous(RendezvousEvent event) {
        switch (event.getType()) {
            case RendezvousEvent.RDVCONNECT, RendezvousEvent.RDVRECONNECT -> connected(event.getPeer());
            case RendezvousEvent.RDVDISCONNECT, RendezvousEvent.RDVFAILED -> {
                synchronized (this) {
                    connected = false;
                }
                Events.emit("rendezvous_lost", "id", event.getPeer(), "group", groupName);
            }
            default -> {
                // The others are about our own clients.
            }
        }
    }

    private void connected(String id) {
        synchronized (this) {
            if (connected) {
                return; // a renewal
            }
            connected = true;
        }
        Events.emit("rendezvous", "id", id, "group", groupName);
        timer.schedule(this::settle, SETTLE_MS, TimeUnit.MILLISECONDS);
    }

    private synchronized void settle() {
        settled = true;
        waiting.forEach(timer::execute);
        waiting = new ArrayList<>();
    }

    private void discovered(DiscoveryEvent event) {
        Enumeration<?> all = event.getResponse().getAdvertisements();
        if (all == null) {
            return;
        }
        while (all.hasMoreElements()) {
            if (all.nextElement() instanceof ModuleSpecAdvertisement msa && msa.getName() != null
                    && msa.getPipeAdvertisement() != null) {
                service(msa.getName()).known(msa.getPipeAdvertisement());
            }
        }
    }
}
