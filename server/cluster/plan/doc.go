// Package plan turns the nodes that a cluster has, and those that it is to have, into
// a graph of tasks. It decides only: values in, values out.
//
//	Have: nodes and how far each service is ─┐
//	Want: nodes, services, definitions ──────┴─ Make ──▶ Plan: tasks with what they need
//
// On a node, tasks form a chain:
//
//	create ▶ confirm ▶ bootstrap ▶ (install ▶ configure ▶ initialize ▶ start) of each service
//	stop ▶ remove of a service that goes;  stop ▶ configure ▶ start of one whose configuration changes;  delete
//
// Between services the order follows their dependencies, for all nodes of the cluster:
//
//	install        after the install of those it requires or uses for its installation; remove the other way round
//	initialize     after the start of those it requires or uses at run time
//	start          after the start of those; stop the other way round
//
// A dependency that lacks the action passes on its own dependencies. Tasks do not name
// the tasks of other nodes but groups, as "start mysql-server": a group is complete when
// all tasks with this action and service are.
//
// Every service task waits for the addresses of new machines (the group "confirm"),
// since configurations name them. Machines are deleted last, when all others work.
package plan
