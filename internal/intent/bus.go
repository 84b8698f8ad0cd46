package intent

// BusServer says where the server of the event bus is, if one of the replicas runs it.
type BusServer struct {
	Address     string // host and port; empty: none ran yet
	Host        string // the name of its machine
	Certificate []byte // of the server, in DER
	Credentials []byte // sealed
}
