// Package layout defines every path below the state, log and cache directories.
// No other package joins paths there.
//
//	<state>/                       /var/lib/inmanta for root, otherwise $XDG_STATE_HOME/ordain
//	  ordain.lock                  held by the one server of this state directory
//	  postgres/  tools/            the embedded database; uv and the like
//	  server/
//	    .inmanta_use_new_disk_layout
//	    .mirrors/<hash>.git        one bare mirror per repository
//	    .certificates/             certificates from ACME, with their keys
//	    <environment>/
//	      scheduler.cfg
//	      compiler/                checkout; .env → .env-py3.x
//	      executors/venvs/<hash>   executors/code/<hash>
//	      runs/<process>           private folders of processes that run its code
//	      cache                    what its compiles and executors remember
//	<log>/                         /var/log/inmanta for root, otherwise <state>/log
//	  server.log  resource-actions-<environment>.log  callback.log
//	  agent-<environment>.log  .out  .err
//
// Everything below server/ can be deleted while the server is down. It is made
// again when it is needed.
package layout
