package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// choice is a text that must be one of a few; set checks it, and the OpenAPI document lists the texts.
type choice interface {
	choices() []string
	choose(text string)
}

// choose fills in a choice. The message is in the form that clients know of an enumeration.
func choose(into choice, value any) error {
	text, _ := value.(string)
	all := into.choices()
	if !slices.Contains(all, text) {
		quoted := make([]string, len(all))
		for i, c := range all {
			quoted[i] = "'" + c + "'"
		}
		last := len(quoted) - 1
		return fmt.Errorf("Input should be %s or %s", strings.Join(quoted[:last], ", "), quoted[last])
	}
	into.choose(text)
	return nil
}

const (
	fullDeploy        = "push_full_deploy"
	incrementalDeploy = "push_incremental_deploy"
	noPush            = "no_push"
)

// triggerMethod says how to deploy: everything, or what is not as intended. Empty: nothing was said.
type triggerMethod string

func (*triggerMethod) choices() []string    { return []string{incrementalDeploy, fullDeploy} }
func (m *triggerMethod) choose(text string) { *m = triggerMethod(text) }

// promoteTrigger is what a promotion says: like triggerMethod, or no_push.
type promoteTrigger string

func (*promoteTrigger) choices() []string    { return []string{incrementalDeploy, fullDeploy, noPush} }
func (m *promoteTrigger) choose(text string) { *m = promoteTrigger(text) }

// split returns what version 1 would have said.
func (m promoteTrigger) split() (push bool, how triggerMethod) {
	if m == noPush {
		return false, ""
	}
	return true, triggerMethod(m)
}

// release releases a version, which deploys what is new or changed in it. With push and a method, it also deploys what
// was not as intended before, or everything.
func (s *server) release(
	ctx context.Context, env intent.EnvironmentID, number int, push bool, how triggerMethod,
) error {
	if err := s.control.Release(ctx, env, number); err != nil || !push || how == "" {
		return err
	}
	_, err := s.control.Deploy(ctx, env, how == fullDeploy, nil)
	return err
}

// agentsActionName is what can be done to all agents, and agentActionName what to one.
type (
	agentsActionName string
	agentActionName  string
)

const removeVenvs = "remove_all_agent_venvs"

var agentActions = []string{"pause", "unpause", "keep_paused_on_resume", "unpause_on_resume"}

func (*agentsActionName) choices() []string    { return append(slices.Clone(agentActions), removeVenvs) }
func (a *agentsActionName) choose(text string) { *a = agentsActionName(text) }

func (*agentActionName) choices() []string    { return agentActions }
func (a *agentActionName) choose(text string) { *a = agentActionName(text) }
