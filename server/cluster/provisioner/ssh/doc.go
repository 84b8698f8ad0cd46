// Package ssh logs in to machines and runs commands there. Nothing is installed on a
// machine for it: it needs /bin/sh, setsid, and tar for uploads.
//
//	Dial ── host key among the pinned ones? ──▶ Client ─┬─ Run: a command, its output, its exit status
//	                                                    ├─ Upload: files and folders, as a tar stream
//	                                                    └─ Folder: a working folder that ends with the connection
//
// What a command starts ends with it when its context ends or the connection breaks: on
// the machine a watchdog reads from the connection, where the client writes a sign of
// life now and then. After silence or the end of the stream it ends the whole session of
// the command. A command that ends by itself may leave services running.
//
// Texts of commands appear in the list of processes of the machine. Values that are
// nobody's business go into files, with Upload.
package ssh
