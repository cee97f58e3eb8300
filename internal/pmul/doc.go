// Package pmul implements the P_Mul transport of ACP 142 and 142(A): one message goes to many receivers, some of which
// may be silent under EMCON for hours, and delivery is proved for each. docs/reference/p-mul.md has layouts,
// procedures and test vectors. Package internal/lab/pmulfile has the sockets and files of plain P_Mul.
//
// The package is pure: callers pass the time, and nothing here reads a clock. Delays are time.Duration, sizes octets,
// rates bits per second. On the wire, and only there, Expiry_Time is seconds since 1970 UTC.
//
// # Choices where the reference is ambiguous
//
// We send Fletcher checksums and accept Fletcher and Internet ones. We read and count FEC and Extra kinds of
// Address_PDU and otherwise ignore them. The word that ends a missing list early means that higher numbers are not
// acknowledged; a list that we shorten always ends with it. We read the Ack timestamp and do not send it.
// Message_Sequence_Number counts per sender and destination and stays the same in every retransmission. We match a
// Reject_PDU by group or by Message_ID, whatever its Source_ID; ours carries our own id. We send Discard_Message_PDUs
// to the group's DPORT. The highest Priority goes first.
//
// # Authentication
//
// Byte-exact ACP 142 has none: anyone who reaches the group can forge an Ack_PDU or a Discard_Message_PDU for the
// message that it names. Between gateways, the seal around the compact coding protects integrity.
//
// # Files
//
// Read api.go, sender.go and receiver.go, then the part of interest.
//
//   - api.go: events, states and outputs
//   - config.go: configuration, limits and derived times
//   - record.go: journal records
//
// The sender:
//
//   - sender.go: Sender and its Step
//   - outgoing.go: one message of a sender
//   - sources.go: how sources share the air, and which messages wait for others
//   - batch.go: several messages that go as one, also at the receiver
//   - destination.go: what a sender knows of another node
//   - passes.go: passes, questions and repeats
//   - answers.go: Acks that arrive
//   - groups.go: dynamic multicast groups
//   - hold.go: a message that is held back
//   - replace.go: a message that replaces one under way
//   - gone.go: a node that is sent nothing more
//   - members.go: which nodes there are
//
// The receiver:
//
//   - receiver.go: Receiver: reassembly of messages
//   - address.go: Address_PDUs that arrive
//   - shards.go: parity shards that arrive
//   - orphans.go: fragments that arrive before their Address_PDU
//   - acks.go: when a receiver acknowledges, and what
//   - lately.go: recent acknowledgements that are repeated in later ones
//   - remember.go: how long a receiver waits for a message, and remembers one
//
// Shared channels:
//
//   - channel.go: other nodes on a shared channel, and the air that they use
//   - floor.go: turns: which node may talk
//   - greedy.go: members that take every turn, or acknowledge what was not sent
//   - urgent.go: urgent messages amid the turns of others
//   - coded.go: turns of messages with parity
//   - alone.go: a short message while the channel is otherwise quiet
//   - rate.go: the rate of a channel, learned by listening
//
// Formats:
//
//   - pdu.go: PDUs as values
//   - codec.go: the other PDUs of ACP 142
//   - ack.go: Ack_PDU
//   - checksum.go: Fletcher and Internet checksums
//   - compact.go: the compact coding inside sealed datagrams
//   - destset.go: destinations as a set, in the compact coding
//   - turnpdu.go: turns and runs in the compact coding
//   - parity.go: Reed-Solomon arithmetic
package pmul
