package aldis.peer;

import java.io.File;
import java.net.URI;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.jxta.id.IDFactory;
import net.jxta.peergroup.PeerGroup;
import net.jxta.peergroup.PeerGroupID;
import net.jxta.platform.NetworkConfigurator;
import net.jxta.platform.NetworkManager;
import net.jxta.protocol.ModuleImplAdvertisement;

/** JXSE 2.7: what has to be done to start it, and what is spelled otherwise than in 2.2. */
final class Library {
    static final String NAME = "jxse-2.7";

    private static final Logger ROOT = Logger.getLogger("");
    private static NetworkManager manager;

    private Library() {
    }

    /** Sets what must be set before a class of the library is loaded. */
    static void properties(Options options) {
        if (options.unsigned) {
            System.setProperty("net.jxta.endpoint.WireFormatMessageFactory.CBJX_DISABLE", "true");
        }
    }

    static boolean signs(Options options) {
        return !options.unsigned;
    }

    static PeerGroup start(Options options, File home) throws Exception {
        JavaVersionFix.apply("1.8");
        ROOT.setLevel(Level.WARNING);
        manager = new NetworkManager(
                options.rdv ? NetworkManager.ConfigMode.RENDEZVOUS_RELAY
                        : options.adhoc ? NetworkManager.ConfigMode.ADHOC : NetworkManager.ConfigMode.EDGE,
                options.name, home.toURI());
        manager.setConfigPersistent(options.home != null);
        NetworkConfigurator c = manager.getConfigurator();
        c.setName(options.name);
        // Given, so that no window asks for them. With signing on the peer ID must stay the certificate's.
        c.setPrincipal(options.name);
        c.setPassword("field-test");
        c.setTcpEnabled(!options.http);
        c.setTcpIncoming(!options.http);
        c.setTcpOutgoing(!options.http);
        c.setTcpInterfaceAddress(options.host);
        c.setTcpPort(options.port);
        c.setTcpStartPort(options.port);
        c.setTcpEndPort(options.port);
        c.setUseMulticast(options.multicast);
        if (options.multicast) {
            c.setMulticastInterface(options.host);
        }
        c.setHttp2Enabled(false); // its library is not in the registry
        c.setHttpEnabled(options.http);
        c.setHttpIncoming(options.http && options.rdv);
        c.setHttpOutgoing(options.http && !options.rdv); // an edge over HTTP lives behind its relay
        if (options.http) {
            c.setHttpInterfaceAddress(options.host);
            c.setHttpPort(options.port);
        }
        c.clearRendezvousSeeds();
        c.clearRelaySeeds();
        for (URI seed : options.seeds) {
            c.addSeedRendezvous(seed);
            c.addSeedRelay(seed);
        }
        return manager.startNetwork();
    }

    static void stop() {
        manager.stopNetwork();
    }

    static PeerGroup join(PeerGroup net, String name, boolean publish, boolean rdv) throws Exception {
        ModuleImplAdvertisement impl = net.getAllPurposePeerGroupImplAdvertisement();
        PeerGroup group = net.newGroup(groupID(name), impl, name, "field-test group " + name);
        if (publish) {
            net.getDiscoveryService().publish(impl);
            net.getDiscoveryService().publish(group.getPeerGroupAdvertisement());
            net.getDiscoveryService().remotePublish(impl);
            net.getDiscoveryService().remotePublish(group.getPeerGroupAdvertisement());
        }
        if (rdv) {
            group.getRendezVousService().startRendezVous();
        }
        return group;
    }

    private static PeerGroupID groupID(String name) throws Exception {
        return (PeerGroupID) IDFactory.fromURI(URI.create(GroupID.urn(name)));
    }
}
