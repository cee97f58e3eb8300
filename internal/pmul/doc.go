// Package pmul implements the P_Mul transport of ACP 142 and 142(A): one message goes to many receivers, some of which
// may be silent under EMCON for hours, and delivery is proved for each. Layouts, procedures and vectors:
// docs/reference/p-mul.md.
// Sockets and files of plain P_Mul are in internal/pmul/pmulfile.
//
// # What the reference could not confirm
//
// We send Fletcher checksums and accept Fletcher and Internet ones. We read and count FEC and Extra kinds of Address_PDU
// and otherwise ignore them. The word that ends a missing list early says that higher numbers are not acknowledged; a
// list that we cut always ends with it. We read the Ack timestamp and do not send it. Message_Sequence_Number counts per
// sender and destination and is the same in every re-transmission. We match a Reject_PDU by group or by Message_ID,
// whatever its Source_ID; ours names ourselves. We send Discard_Message_PDUs to the group's DPORT. The greatest Priority
// goes first.
//
// # Authentication
//
// Byte-exact ACP 142 has none: whoever reaches the group can forge an Ack_PDU or a Discard_Message_PDU, for the one
// message that it names. Integrity comes from the seal around the compact coding.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Delays are time.Duration, sizes octets, rates bits per second.
// Expiry_Time is seconds since 1970 UTC on the wire and nowhere else.
//
// # Files
//
//   - ack.go: Ack_PDU
//   - acks.go: a receiver's Acks: when and for what
//   - address.go: a receiver takes Address_PDUs
//   - alone.go: a short message with nothing else on a shared channel
//   - answers.go: a sender takes Acks
//   - api.go: events, states and outputs
//   - channel.go: others on a shared channel, and the air that they use
//   - checksum.go: Fletcher and Internet checksums
//   - coded.go: turns of coded messages on shared channels
//   - codec.go: the other PDUs of ACP 142
//   - compact.go: the compact coding inside sealed datagrams
//   - config.go: configuration, limits and derived times
//   - destset.go: destinations as a set, in the compact coding
//   - destination.go: what a sender knows of another node
//   - floor.go: whose turn it is on a shared channel
//   - gone.go: a node that gets nothing more
//   - groups.go: dynamic multicast groups
//   - hold.go: a message that is held back
//   - lately.go: what acknowledgements say again
//   - orphans.go: what came before its Address_PDU
//   - outgoing.go: one message of a sender
//   - pair.go: the other on a channel of two, and the air that it uses
//   - parity.go: Reed-Solomon shards as arithmetic
//   - passes.go: passes, questions and repeats of a sender
//   - pdu.go: PDUs as values
//   - receiver.go: Receiver: messages put together
//   - record.go: journal records
//   - remember.go: how long a receiver waits for a message, and remembers one
//   - replace.go: a message that replaces one under way
//   - sender.go: Sender and its Step
//   - shards.go: a receiver takes shards
//   - turnpdu.go: turns and runs in the compact coding
package pmul
