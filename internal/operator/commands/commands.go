package operator

import (
	"aldis/internal/operator/cli"
)

// Commands are the commands with which operators work on a gateway and its files, by name.
var Commands = map[string]cli.Command{
	"adverts":  advertsCommand,
	"audit":    auditCommand,
	"backup":   backupCommand,
	"bill":     billCommand,
	"check":    checkCommand,
	"compact":  compactCommand,
	"corpus":   corpusCommand,
	"doctor":   doctorCommand,
	"drain":    drainCommand,
	"fleet":    fleetCommand,
	"group":    groupCommand,
	"init":     initCommand,
	"journal":  journalCommand,
	"keys":     keysCommand,
	"link":     linkCommand,
	"message":  messageCommand,
	"messages": messagesCommand,
	"peer":     peerCommand,
	"profiles": profilesCommand,
	"reload":   reloadCommand,
	"restore":  restoreCommand,
	"silence":  silenceCommand,
	"site":     siteCommand,
	"status":   statusCommand,
	"probe":    linkProbeCommand,
	"top":      topCommand,
	"xmpp":     xmppCommand,
}
