// Package workers runs the provisioners of a server: child processes that carry out the tasks of clusters, each for one
// project.
//
//	record: projects with tasks ──▶ decide (turns.go): whose provisioner starts, and whose ends
//	                                   │
//	                                   ▼ one child for each project (child.go)
//	desk ◀── HTTP over a socket pair ── `ordain provisioner`, confined ──▶ clouds, machines over SSH
//
// What plug-ins do is not to be trusted with the server, and credentials of one project not with another one. So a
// provisioner serves one project for its life, and is confined as executors are: as root each project has a user of its
// own, it sees its own folder and the plug-ins, reaches the network, and knows no secret but those of the tasks that it
// was given. Who asks for tasks is decided by the socket that the request came over.
//
// There are at most Config.Max provisioners at a time. When more projects have something to do, those that have had
// their turn are asked to end: they take no further task, finish those that they have, and make room. One that
// crashes is started again after a pause that doubles each time. The tasks of a dead one are given out again when
// their leases are over.
package workers
