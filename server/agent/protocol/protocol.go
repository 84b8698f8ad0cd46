// Package protocol has the messages between the agent server and agents, as
// docs/agent-protocol.md describes them. It is used by both sides, sends nothing
// itself, and checks what can be checked of one message alone.
//
//	messages.go  a type for each message
//	decode.go    bytes ─▶ message, checked; what an agent sends is hostile until then
//	token.go     the text of a join token
package protocol

import "time"

// Version is the newest version of the protocol that this program speaks, Oldest the first that it understands;
// Subprotocol names the protocol in the WebSocket handshake.
const (
	Version     = 1
	Oldest      = 1
	Subprotocol = "ordain-agent.1"
)

// Paths of the agent server.
const (
	AuthorityPath = "/agent/v1/ca"
	JoinPath      = "/agent/v1/join"
	SubscribePath = "/agent/v1/subscribe"
)

// Limits in bytes.
const (
	MaxMessage = 4 << 20  // one message
	MaxPart    = 1 << 20  // data of one part of a content or an answer, before base64
	MaxAnswer  = 64 << 20 // all parts of an answer
	MaxWaiting = 32 << 20 // messages that wait for an agent
	MaxRequest = 16 << 10 // a certificate request in PEM
)

// Limits in numbers.
const (
	MaxHolds    = 10_000 // contents in a hello
	MaxCommands = 10_000 // commands in a hello, running and unrecorded together
)

// Times.
const (
	HelloTimeout = 10 * time.Second
	PingInterval = 10 * time.Second
	SlowTimeout  = 30 * time.Second
)

// Limits of what an agent may send.
const (
	ReceiveBurst = 64 << 20 // bytes
	ReceiveRate  = 8 << 20  // bytes per second
)

// Type says what a message is.
type Type string

// Types of messages from the server, and then from the agent.
const (
	Welcome     Type = "welcome"
	Ping        Type = "ping"
	Content     Type = "content"
	Command     Type = "command"
	Cancel      Type = "cancel"
	Recorded    Type = "recorded"
	Returned    Type = "returned"
	Rotate      Type = "rotate"
	Certificate Type = "certificate"
	Bye         Type = "bye"

	Hello    Type = "hello"
	Pong     Type = "pong"
	Stored   Type = "stored"
	Progress Type = "progress"
	Answer   Type = "answer"
	Call     Type = "call"
	Renew    Type = "renew"
)

// Action is what a command asks for.
type Action string

// The actions.
const (
	Deploy  Action = "deploy"
	DryRun  Action = "dryrun"
	Facts   Action = "facts"
	Prepare Action = "prepare"
	Forget  Action = "forget"
)

// Statuses of answers beside those of handlers.
const (
	Done      = "done"      // of prepare and forget
	Lost      = "lost"      // the agent ended while it carried out the command
	Late      = "late"      // the deadline passed
	Cancelled = "cancelled" // before it began
	Refused   = "refused"   // it cannot be carried out; a line says why
)

// Statuses are all that an answer may have.
var Statuses = []string{
	"deployed", "failed", "skipped", "unavailable", "dry", "non_compliant", "skipped_for_dependency",
	Done, Lost, Late, Cancelled, Refused,
}

// Reason says why a server closes a connection.
type Reason string

// The reasons. After Revoked and Removed an agent ends.
const (
	Draining   Reason = "draining"
	Replaced   Reason = "replaced"
	IsRevoked  Reason = "revoked"
	IsRemoved  Reason = "removed"
	Slow       Reason = "slow"
	BadMessage Reason = "protocol"
)

// Methods of calls that are not calls of the API: the files that handlers read and store.
const (
	FileMethod     = "file"      // {"hash", "offset", "length"}: {"size", "data"}
	StatFileMethod = "stat_file" // {"hash"}: true or false
	PutFileMethod  = "put_file"  // {"data"}: the hash
)
