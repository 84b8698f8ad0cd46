package push

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

func stage(compile intent.CompileID, name, command string, from, to time.Time) intent.Stage {
	return intent.Stage{
		ID: uuid.New(), Compile: compile, Name: name, Command: command, Started: from, Completed: &to,
	}
}

// Report adds the report of the compile to a version: when it ran, in which stages, and what the client said of it in
// metadata. end is when the version arrived.
func (v *Version) Report(metadata map[string]any, stages []intent.Stage, id intent.CompileID, started, end time.Time) {
	pushed := v.Provenance.Pushed
	message := pushed.Message
	if message == "" {
		message = "Compiled on another machine"
	}
	trigger := intent.Trigger{Type: intent.TriggerPushed, Message: message + " (" + pushed.Words() + ")"}
	if text, err := json.Marshal(metadata); err != nil || len(text) > 16<<10 || metadata == nil {
		metadata = map[string]any{} // more than a note about the compile
	}
	stages = append(stages, stage(id, intent.StageExport, "sent to the server", end, end))
	v.Provenance.Compile, v.Provenance.Trigger = id, trigger
	compile := intent.Compile{
		ID: id, Environment: v.Environment, Requested: started, Started: &started, Completed: &end, Trigger: trigger,
		Metadata: metadata, Export: true,
	}
	if v.Partial != nil {
		compile.Partial, compile.RemovedSets = true, v.Partial.Removed
	}
	v.Elsewhere = &intent.Elsewhere{Compile: compile, Stages: stages}
}
