package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/control"
)

// maxForm is the size of the largest form that is read.
const maxForm = 1 << 20

// doneTexts say on a page what the form before it did. An address names one of them; it cannot bring words of its own.
var doneTexts = map[string]string{
	"created":           "The environment was created.",
	"cloned":            "The environment was cloned. What was not copied, such as secrets, can be set below.",
	"copied":            "The settings were copied.",
	"nothingcopied":     "Nothing was copied: no setting was chosen, or none differs any more.",
	"compile":           "Sync was asked for: the newest commit is fetched and compiled.",
	"runcancelled":      "The run is cancelled; what is deployed stays.",
	"deploy":            "What is not as intended is being deployed.",
	"repair":            "Every resource is being verified and repaired.",
	"bulkdeploy":        "The chosen resources that are not as intended are being deployed.",
	"bulkrepair":        "The chosen resources are being verified and repaired.",
	"bulkpaused":        "The agents of the chosen resources are paused.",
	"bulkresumed":       "The agents of the chosen resources are unpaused.",
	"resource":          "The resource is being deployed.",
	"facts":             "The resource was asked for its facts.",
	"retried":           "The process is tried again.",
	"processcancelled":  "The process is cancelled. One that runs ends as soon as its handler notices.",
	"cancelled":         "The dry run was cancelled.",
	"freed":             "Unparked: what is not as intended is deployed again.",
	"halted":            "The environment is halted.",
	"resumed":           "The environment is resumed.",
	"paused":            "The agent is paused.",
	"unpaused":          "The agent is unpaused.",
	"agentrevoked":      "The agent is revoked. It can join again with a new token.",
	"agentremoved":      "The agent is removed.",
	"joinrevoked":       "The join token was revoked.",
	"overridden":        "Changes are let through.",
	"endoverride":       "Windows and freezes hold changes again.",
	"released":          "The version was released.",
	"confirmed":         "The version was confirmed and released.",
	"preview":           "The preview is being computed again.",
	"approved":          "Approved: the preview is being computed.",
	"redelivered":       "The webhook is handled again.",
	"accepted":          "The commit was accepted and is being compiled.",
	"rolledback":        "Rolled back: the earlier version is deployed again.",
	"rollheld":          "This version takes away much, so it is held: look at what goes, then confirm it.",
	"promoted":          "The commit is promoted and is being compiled.",
	"approvedcommit":    "The commit is approved; it is promoted once its other gates are open.",
	"promotionspaused":  "Nothing is promoted until somebody resumes it.",
	"promotionsresumed": "Commits are promoted again.",
	"unblocked":         "The commit is unblocked; what the branch points to is being compiled.",
	"useradded":         "The user was added. They see nothing until you give them a role.",
	"userdeleted":       "The user was deleted and logged out.",
	"userdisabled":      "The user is disabled and logged out.",
	"userenabled":       "The user may log in again.",
	"password":          "The password was changed; the user's other logins have ended.",
	"given":             "The role was given.",
	"taken":             "The role was taken away.",
	"rolemade":          "The role was made.",
	"roledeleted":       "The role was deleted.",
	"ended":             "The login was ended.",
	"revoked":           "The token was revoked.",
	"read":              "Marked.",
	"saved":             "Saved.",
	"parameterset":      "The parameter is set. If the model was waiting for it, it is compiled again.",
	"parameterdeleted":  "The parameter was deleted.",
	"factset":           "The fact is set. If the model was waiting for it, it is compiled again.",
	"factdeleted":       "The fact was deleted.",
	"clusterpaused":     "The cluster is paused: no task is handed out until it is resumed.",
	"clusterresumed":    "The cluster is resumed.",
	"clusteraborted":    "The job was ended. Machines that were made are still there, and known.",
	"clusterretried":    "Another job begins soon.",
	"cleared":           "The environment was cleared.",
	"deleted":           "The environment was deleted.",

	"entitysaved":        "Saved as a new version.",
	"entitydeleted":      "Deleted. Old versions stay for the clusters that were made from them.",
	"resourceuploaded":   "The file was uploaded as a new version. Stage it, and sync, so that plug-ins use it.",
	"resourcestaged":     "Staged: the next sync activates it.",
	"resourcerecalled":   "Recalled: the next sync takes it away.",
	"resourcedeleted":    "The version was deleted.",
	"resourcesynced":     "Synced: tasks that begin from now on use what is active.",
	"provisionerrevoked": "The provisioner is revoked. Its tasks go to others when its leases end.",

	"nocompile": "Nothing was compiled: this environment does not compile on the server " +
		"(its setting server_compile is off).",
}

// action does what a form asks for, and returns the address of the page to show next.
type action func(r *http.Request, e intent.Environment) (next string, err error)

// post serves a form: it finds the environment, reads the form, does the action, and redirects the browser to a page,
// so that a reload does nothing twice.
func (c *console) post(do action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		e, err := c.environment(r)
		if err == nil {
			if parseErr := r.ParseForm(); parseErr != nil {
				err = fault.Wrap("console.post", fault.Invalid, parseErr).Say("the form cannot be read")
			}
		}
		var next string
		if err == nil {
			next, err = do(r, e)
		}
		if errors.Is(err, errAnswered) {
			return
		}
		if err != nil {
			audit.Failed(r.Context(), err)
			c.fail(w, r, err)
			return
		}
		http.Redirect(w, r, next, http.StatusSeeOther)
	}
}

// errAnswered is what an action returns that has answered the request itself.
var errAnswered = errors.New("answered")

// back returns the address of the page that a form came from, which says there what was done. It is always a path of
// this console; fallback is used when the form names none.
func back(r *http.Request, fallback, done string) string {
	u, err := url.Parse(r.PostFormValue("back"))
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, `\`) {
		u = &url.URL{Path: fallback}
	}
	query := u.Query()
	query.Set("done", done)
	return (&url.URL{Path: u.Path, RawQuery: query.Encode()}).String()
}

// confirmed checks that the name of the environment was typed, before something is destroyed.
func confirmed(r *http.Request, e intent.Environment) error {
	if r.PostFormValue("confirm") != e.Name {
		return fault.New("console.confirm", fault.Invalid, "the typed name is not the name of the environment").
			Hint("type " + e.Name + " to confirm; nothing was done")
	}
	return nil
}

func (c *console) doCompile(r *http.Request, e intent.Environment) (string, error) {
	id, warning, err := c.control.RequestCompile(r.Context(), e.ID, control.CompileRequest{
		Update: r.PostFormValue("update") != "no", Reinstall: r.PostFormValue("reinstall") == "yes",
		Trigger: intent.Trigger{Type: "console", Message: "Sync asked for in the console"},
	})
	if err != nil {
		return "", err
	}
	if warning != "" {
		return back(r, envURL(e.ID), "nocompile"), nil
	}
	return runURL(e.ID, id) + "?done=compile", nil
}

func (c *console) doDeploy(r *http.Request, e intent.Environment) (string, error) {
	full := r.PostFormValue("full") == "yes"
	done := "deploy"
	if full {
		done = "repair"
	}
	var agents []string
	if agent := r.PostFormValue("agent"); agent != "" {
		agents = []string{agent}
	}
	_, err := c.control.Deploy(r.Context(), e.ID, full, agents)
	return back(r, envURL(e.ID), done), err
}

// doHalt halts an environment. The form asks for a reason, which everybody reads who meets the halted environment.
func (c *console) doHalt(r *http.Request, e intent.Environment) (string, error) {
	if reason := field(r, "reason"); reason == "" || len(reason) > 1000 {
		return "", fault.New("console.halt", fault.Invalid, "halting takes a reason of at most 1000 bytes").
			Hint("say why nothing may be compiled or deployed, for example: the database is being moved")
	}
	return back(r, envURL(e.ID), "halted"), c.control.Halt(asPerson(r), e.ID)
}

func (c *console) doResume(r *http.Request, e intent.Environment) (string, error) {
	return back(r, envURL(e.ID), "resumed"), c.control.Resume(asConsole(r), e.ID)
}

func (c *console) doDeployResource(r *http.Request, e intent.Environment) (string, error) {
	id, err := intent.ParseResourceID(r.PostFormValue("id"))
	if err != nil {
		return "", fault.Wrap("console.deploy", fault.Invalid, err)
	}
	_, err = c.control.DeployResource(r.Context(), e.ID, id, false)
	return resourceURL(e.ID, id) + "&done=resource", err
}

func (c *console) doPause(r *http.Request, e intent.Environment) (string, error) {
	pause := r.PostFormValue("pause") == "yes"
	done := "unpaused"
	if pause {
		done = "paused"
	}
	err := c.control.PauseAgent(asConsole(r), e.ID, r.PostFormValue("agent"), pause)
	return back(r, envURL(e.ID)+"/agents", done), err
}

func (c *console) doRelease(r *http.Request, e intent.Environment) (string, error) {
	n, err := versionNumber(r)
	if err != nil {
		return "", err
	}
	return versionURL(e.ID, n) + "?done=released", c.control.Release(r.Context(), e.ID, n)
}

// versionNumber reads the number of a version in the path of a request.
func versionNumber(r *http.Request) (int, error) {
	n, err := strconv.Atoi(r.PathValue("version"))
	if err != nil {
		return 0, fault.New("console", fault.NotFound, "there is no version "+r.PathValue("version"))
	}
	return n, nil
}
