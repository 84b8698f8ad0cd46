#!/bin/sh
# A provider whose machines are files in a folder. The action and the tag are among the variables too, so a script
# needs to read little of the task; a real one would use jq.
set -eu

task=$(cat)
case $task in
{*}) ;;
*)
	echo '{"status":"refused","problem":"the task is not JSON"}' >&3
	exit
	;;
esac
world=$(printf '%s' "$task" | sed -n 's/.*"world":"\([^"]*\)".*/\1/p')
machine=$world/$ORDAIN_TAG

case $ORDAIN_ACTION in
create)
	case $task in *'"replace":true'*) rm -f "$machine" ;; esac
	echo "looking for a machine with the tag"
	if [ ! -e "$machine" ]; then
		echo "making one"
		echo new >"$machine.part"
		mv "$machine.part" "$machine"
	fi
	printf '{"status":"done","facts":{"providerid":"folder-%s"}}\n' "$ORDAIN_TAG" >&3
	;;
confirm)
	if [ -e "$machine" ]; then
		echo '{"status":"done","addresses":{"access_v4":"127.0.0.1","bind_v4":"127.0.0.1"}}' >&3
	else
		echo '{"status":"failed","problem":"there is no machine with the tag"}' >&3
	fi
	;;
delete)
	rm -f "$machine" "$machine.part"
	echo '{"status":"done"}' >&3
	;;
*)
	printf '{"status":"refused","problem":"the action %s is unknown"}\n' "$ORDAIN_ACTION" >&3
	;;
esac
