"""A session of two slixmpp clients with a server, part by part: prints "ok PART" or "no PART: why", one to a line.

usage: suite.py DOMAIN ROOMS HOST PORT CA    users anna and alma, whose password is "secret"
"""
import asyncio
import logging
import sys
from xml.etree import ElementTree as ET

import slixmpp

logging.disable(logging.CRITICAL)
domain, rooms, host, port, authority = sys.argv[1:6]
PLUGINS = ["xep_0004", "xep_0030", "xep_0045", "xep_0059", "xep_0184", "xep_0198", "xep_0199", "xep_0203", "xep_0280", "xep_0297", "xep_0313"]


class Client(slixmpp.ClientXMPP):
    def __init__(self, name, resource):
        super().__init__(f"{name}@{domain}/{resource}", "secret")
        self.enable_direct_tls = self.enable_plaintext = False
        self.ca_certs = authority
        self.auto_authorize = self.auto_subscribe = True
        for plugin in PLUGINS:
            self.register_plugin(plugin)
        self.heard = []
        self.add_filter("in", self.hear)
        self.add_event_handler("session_start", self.begun)
        self.ready = asyncio.get_running_loop().create_future()

    def hear(self, stanza):
        self.heard.append(str(stanza))
        return stanza

    async def begun(self, _):
        self.send_presence()
        if not self.ready.done():
            self.ready.set_result(True)

    async def until(self, *texts):
        for _ in range(1500):  # a busy machine takes its time
            if any(all(t in line for t in texts) for line in self.heard):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{self.boundjid} never heard {texts}: {self.heard[-3:]}")


async def main():
    anna, alma, second = Client("anna", "one"), Client("alma", "two"), Client("anna", "three")
    room = f"suite@{rooms}"

    async def login():
        for c in (anna, alma, second):
            c.connect(host, int(port))
            await asyncio.wait_for(c.ready, 20)
        assert anna.boundjid.resource == "one"

    async def roster():
        await anna.get_roster()
        await anna.update_roster(f"alma@{domain}", name="Alma", groups=["crew"])
        await anna.until("jabber:iq:roster", "crew", "Alma")

    async def subscription():
        anna.send_presence_subscription(f"alma@{domain}")
        await anna.until("<presence", f"alma@{domain}/two")
        await alma.until("<presence", f"anna@{domain}/one")

    async def presence():
        alma.send_presence(pshow="away", pstatus="at the helm")
        await anna.until("<presence", "at the helm", "away")

    async def chat():
        await second["xep_0280"].enable()
        anna.send_message(f"alma@{domain}", "hello & <good> day", mtype="chat")
        await alma.until("<message", "hello &amp; &lt;good&gt; day")

    async def carbons():
        await second.until("urn:xmpp:carbons:2", "sent", "hello &amp;")

    async def ping():
        await anna["xep_0199"].ping(domain)
        await anna["xep_0199"].ping(f"alma@{domain}/two")

    async def disco():
        info = await anna["xep_0030"].get_info(domain)
        assert "urn:xmpp:ping" in str(info), info
        items = await anna["xep_0030"].get_items(domain)
        assert rooms in str(items), items

    async def unknown():
        anna.send_message(f"nobody@{domain}", "anybody?", mtype="chat")
        await anna.until("<message", "error", "service-unavailable", f"nobody@{domain}")

    async def muc():
        await anna["xep_0045"].join_muc_wait(room, "Anna")
        await alma["xep_0045"].join_muc_wait(room, "Alma")
        await anna.until("<presence", f"{room}/Alma")
        alma.send_message(room, "to all", mtype="groupchat")
        await anna.until("<message", "to all", f"{room}/Alma", "urn:xmpp:sid:0")
        await alma.until("<message", "to all", f"{room}/Alma")
        anna["xep_0045"].set_subject(room, "watches")
        await alma.until("<subject>watches</subject>")
        alma["xep_0045"].leave_muc(room, "Alma")
        await anna.until("<presence", f"{room}/Alma", "unavailable")

    async def moderation():
        deck = f"deck@{rooms}"
        muc = anna["xep_0045"]
        await muc.join_muc_wait(deck, "Anna")
        await alma["xep_0045"].join_muc_wait(deck, "Alma")
        await muc.set_role(deck, "Alma", "visitor")
        alma.send_message(deck, "may I", mtype="groupchat")
        await alma.until("<message", "error", "forbidden", deck)
        await muc.set_role(deck, "Alma", "none", reason="too loud")
        await alma.until("<presence", f"{deck}/Alma", "unavailable", "307", "too loud")
        form = await muc.get_room_config(deck)
        form["type"] = "submit"
        form.set_values({"muc#roomconfig_roomname": "Deck", "muc#roomconfig_membersonly": True})
        await muc.set_room_config(deck, form)
        assert "muc_membersonly" in str(await anna["xep_0030"].get_info(deck))
        try:
            await alma["xep_0045"].join_muc_wait(deck, "Alma")
            raise AssertionError("she is let in")
        except slixmpp.exceptions.PresenceError as e:
            assert e.condition == "registration-required", e
        await muc.set_affiliation(deck, "member", jid=f"alma@{domain}")
        await alma["xep_0045"].join_muc_wait(deck, "Alma")
        assert f"alma@{domain}" in str(await muc.get_affiliation_list(deck, "member"))
        await muc.set_affiliation(deck, "outcast", jid=f"alma@{domain}", reason="mutiny")
        await alma.until("<presence", f"{deck}/Alma", "301", "mutiny")
        await muc.destroy(deck, reason="scrapped")
        await anna.until("<presence", f"{deck}/Anna", "<destroy", "scrapped")

    async def refusals():
        """What docs/limits.md says that the server does not have is refused, and does not stay without an answer."""
        for kind, ns, inside in (("get", "urn:xmpp:blocking", "blocklist"), ("get", "jabber:iq:register", "query"), ("set", "http://jabber.org/protocol/pubsub", "pubsub"),
                                 ("get", "jabber:iq:version", "query"), ("get", "urn:xmpp:extdisco:2", "services")):
            iq = anna.make_iq(ito=None if kind == "set" else domain, itype=kind)
            iq.append(ET.Element(f"{{{ns}}}{inside}"))
            try:
                await iq.send(timeout=20)
                raise AssertionError(f"{ns} has an answer")
            except slixmpp.exceptions.IqError as e:
                assert e.condition == "service-unavailable", e

    async def archive():
        found = [m async for m in anna["xep_0313"].iterate(with_jid=slixmpp.JID(f"alma@{domain}"))]
        assert any("hello &amp;" in str(m) for m in found), found
        found = [m async for m in anna["xep_0313"].iterate(jid=slixmpp.JID(room))]
        assert any("to all" in str(m) for m in found), found

    async def history():
        await alma["xep_0045"].join_muc_wait(room, "Alma")
        await alma.until("<message", "to all", "delay")

    async def resume():
        done = asyncio.get_running_loop().create_future()
        anna.add_event_handler("session_resumed", lambda _: done.set_result(True))
        anna.transport.abort()
        alma.send_message(f"anna@{domain}/one", "while you were away", mtype="chat")
        await asyncio.sleep(0.2)
        anna.connect(host, int(port))
        await asyncio.wait_for(done, 20)
        await anna.until("while you were away")
        anna.send_message(f"alma@{domain}", "back again", mtype="chat")
        await alma.until("back again")

    async def offline():
        await alma.disconnect()
        anna.send_message(f"alma@{domain}", "read this later", mtype="chat")
        later = Client("alma", "four")
        await asyncio.sleep(0.2)
        later.connect(host, int(port))
        await later.until("read this later", "delay")

    async def wrong():
        liar = Client("anna", "five")
        liar.credentials["password"] = "guess"
        failed = asyncio.get_running_loop().create_future()
        liar.add_event_handler("failed_all_auth", lambda _: failed.done() or failed.set_result(True))
        liar.connect(host, int(port))
        await asyncio.wait_for(failed, 20)
        liar.abort()

    for part in (login, roster, subscription, presence, chat, carbons, ping, disco, unknown, muc, moderation, refusals, archive, history, resume, offline, wrong):
        try:
            await asyncio.wait_for(part(), 40)
            print("ok", part.__name__, flush=True)
        except Exception as e:
            print(f"no {part.__name__}: {e!r}"[:400], flush=True)


asyncio.get_event_loop().run_until_complete(main())
