package aldis.peer;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.net.URI;
import java.security.Security;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.jxta.document.AdvertisementFactory;
import net.jxta.document.Element;
import net.jxta.document.MimeMediaType;
import net.jxta.id.IDFactory;
import net.jxta.impl.access.always.AlwaysAccessService;
import net.jxta.impl.membership.none.NoneMembershipService;
import net.jxta.impl.membership.pse.PSEConfig;
import net.jxta.impl.membership.pse.PSEMembershipService;
import net.jxta.impl.peergroup.StdPeerGroupParamAdv;
import net.jxta.membership.MembershipService;
import net.jxta.peergroup.PeerGroup;
import net.jxta.peergroup.PeerGroupID;
import net.jxta.pipe.PipeID;
import net.jxta.platform.NetworkConfigurator;
import net.jxta.platform.ModuleClassID;
import net.jxta.platform.ModuleSpecID;
import net.jxta.platform.NetworkManager;
import net.jxta.protocol.ModuleImplAdvertisement;

/** JXSE 2.7: what has to be done to start it, and what is spelled otherwise than in 2.2. */
final class Library {
    static final String NAME = "jxse-2.7";

    private static final Logger ROOT = Logger.getLogger("");
    /** The specification of an all-purpose group that everybody may join. */
    private static final String OPEN_GROUP = "urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE00000001A1D1500000000000000000000000000A06";
    private static NetworkManager manager;

    private Library() {
    }

    /** Sets what must be set before a class of the library is loaded. */
    static void properties(Options options) {
        // Its secure pipes speak TLS 1.0 with certificates of its own kind, which present machines forbid.
        Security.setProperty("jdk.tls.disabledAlgorithms", "SSLv3");
        Security.setProperty("jdk.certpath.disabledAlgorithms", "MD2");
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

    /** The pipe of a room, whose ID follows from its name. */
    static PipeID pipe(String name) throws Exception {
        return (PipeID) IDFactory.fromURI(URI.create(GroupID.pipe(name)));
    }

    static void stop() {
        manager.stopNetwork();
    }

    static PeerGroup join(PeerGroup net, String name, boolean publish, boolean rdv, String membership) throws Exception {
        ModuleImplAdvertisement impl = net.getAllPurposePeerGroupImplAdvertisement();
        if (membership.equals("none")) { // the library's own choice is PSE
            StdPeerGroupParamAdv parts = new StdPeerGroupParamAdv(impl.getParam());
            replace(net, impl, parts, PeerGroup.membershipClassID, NoneMembershipService.noneMembershipSpecID,
                    NoneMembershipService.class);
            // The library's access service works with PSE alone.
            replace(net, impl, parts, PeerGroup.accessClassID, PeerGroup.refAccessSpecID,
                    AlwaysAccessService.class);
            impl.setParam((Element<?>) parts.getDocument(MimeMediaType.XMLUTF8));
            impl.setModuleSpecID((ModuleSpecID) IDFactory.fromURI(URI.create(OPEN_GROUP)));
        }
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

    /** Another service in a group's specification, published here: else the library looks for it all over the net. */
    private static void replace(PeerGroup net, ModuleImplAdvertisement group, StdPeerGroupParamAdv parts,
            ModuleClassID role, ModuleSpecID spec, Class<?> code) throws Exception {
        ModuleImplAdvertisement service = (ModuleImplAdvertisement)
                AdvertisementFactory.newAdvertisement(ModuleImplAdvertisement.getAdvertisementType());
        service.setModuleSpecID(spec);
        service.setCompat(group.getCompat());
        service.setCode(code.getName());
        service.setUri(group.getUri());
        service.setProvider(group.getProvider());
        service.setDescription(code.getSimpleName());
        net.getDiscoveryService().publish(service);
        parts.addService(role, spec);
    }

    /** The certificate that others must trust before this peer takes part in secure pipes with them; base 64. */
    static String certificate(PeerGroup net) throws Exception {
        return Base64.getEncoder().encodeToString(pse(net).getTrustedCertificate(net.getPeerID()).getEncoded());
    }

    /** Trusts the certificate of another peer, in the groups whose TLS transport carries secure pipes. */
    static void trust(PeerGroup net, String base64) throws Exception {
        X509Certificate cert = (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(Base64.getDecoder().decode(base64)));
        for (PeerGroup g = net; g != null; g = g.getParentGroup()) {
            if (g.getMembershipService() instanceof PSEMembershipService) {
                pse(g).setTrustedCertificate(IDFactory.newCodatID(net.getPeerGroupID()), cert);
            }
        }
    }

    private static PSEConfig pse(PeerGroup group) {
        return ((PSEMembershipService) group.getMembershipService()).getPSEConfig();
    }

    /** How one becomes a member of a group, by the name of the library's class. */
    static String membership(PeerGroup group) {
        MembershipService service = group.getMembershipService();
        return service.getImplAdvertisement() instanceof ModuleImplAdvertisement impl ? impl.getCode() : "?";
    }

    private static PeerGroupID groupID(String name) throws Exception {
        return (PeerGroupID) IDFactory.fromURI(URI.create(GroupID.urn(name)));
    }

    /** Obeys a command of `gateway bench`; false when it is none. */
    static boolean bench(Room room, String verb, java.util.List<String> words) {
        return Bench.command(room, verb, words);
    }
}
