"""A client that pytak makes: sends one position, and prints what comes as lines "type uid callsign".

usage: client.py URL UID CALLSIGN    URL: tcp://address:port
"""
import asyncio
import sys
import warnings
from configparser import ConfigParser
from datetime import datetime, timedelta, timezone
from xml.etree import ElementTree

warnings.simplefilter("ignore")
import pytak  # noqa: E402


def position(uid, callsign):
    form = "%Y-%m-%dT%H:%M:%S.%fZ"
    now = datetime.now(timezone.utc)
    event = ElementTree.Element("event", version="2.0", uid=uid, type="a-f-G-U-C", how="m-g", time=now.strftime(form),
                                start=now.strftime(form), stale=(now + timedelta(minutes=5)).strftime(form))
    ElementTree.SubElement(event, "point", lat="54.5", lon="10.5", hae="3.0", ce="9999999.0", le="9999999.0")
    detail = ElementTree.SubElement(event, "detail")
    ElementTree.SubElement(detail, "contact", callsign=callsign, endpoint="*:-1:stcp")
    ElementTree.SubElement(detail, "__group", name="Cyan", role="Team Member")
    return ElementTree.tostring(event)


class Sender(pytak.QueueWorker):
    async def run(self, number_of_iterations=-1):
        await self.put_queue(position(*sys.argv[2:4]))
        await asyncio.Event().wait()


class Receiver(pytak.QueueWorker):
    async def run(self, number_of_iterations=-1):
        while True:
            event = ElementTree.fromstring(await self.queue.get())
            contact = event.find("detail/contact")
            print(event.get("type"), event.get("uid"), contact.get("callsign") if contact is not None else "-", flush=True)


async def main():
    config = ConfigParser()
    config["tak"] = {"COT_URL": sys.argv[1]}
    tool = pytak.CLITool(config["tak"])
    await tool.setup()
    tool.add_tasks({Sender(tool.tx_queue, config["tak"]), Receiver(tool.rx_queue, config["tak"])})
    await tool.run()


asyncio.run(main())
