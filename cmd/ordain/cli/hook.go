package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/webhooks"
)

// newHook makes `ordain hook`. A bare repository's post-receive hook can run its
// subcommand send, so that a plain Git server notifies Ordain as a forge does.
func newHook() *cobra.Command {
	var url, secretFile string
	send := &cobra.Command{
		Use:   "send",
		Short: "Notify a server of a push; run it in a repository's post-receive hook",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			secret, err := os.ReadFile(secretFile)
			if err != nil {
				return fault.Wrap("cli.hook", fault.Invalid, err).
					Say("the file with the webhook's secret cannot be read")
			}
			return sendPushes(c, url, bytes.TrimSpace(secret))
		},
	}
	send.Flags().StringVar(&url, "url", "", "address of the webhook, such as http://127.0.0.1:8888/hooks/github")
	send.Flags().StringVar(&secretFile, "secret-file", "", "file that holds the secret of the environment's webhook")
	_ = send.MarkFlagRequired("url")
	_ = send.MarkFlagRequired("secret-file")
	r := &remote{}
	return r.group(
		"hook",
		"Webhooks: list those that were received, and send them from a repository without a forge",
		append(deliveryCommands(r), send)...)
}

// sendPushes reads the input of a post-receive hook, which has a line for each ref
// (old commit, new commit, name), and sends a signed push event for each line.
func sendPushes(c *cobra.Command, url string, secret []byte) error {
	repository := os.Getenv("GIT_DIR")
	if repository == "" {
		repository = "."
	}
	repository, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 20 * time.Second}
	lines := bufio.NewScanner(c.InOrStdin())
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			continue
		}
		body, err := json.Marshal(map[string]any{
			"ref": fields[2], "before": fields[0], "after": fields[1],
			"deleted": strings.Trim(fields[1], "0") == "",
			"repository": map[string]string{
				"full_name": filepath.Base(repository),
				"clone_url": "file://" + repository,
			},
		})
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return usageError{err}
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", webhooks.Sign(body, secret))
		resp, err := client.Do(req)
		if err != nil {
			return fault.Wrap("cli.hook", fault.Unavailable, err).
				Say("the server could not be notified of the push; it will find it by polling")
		}
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("the server answered %s: %s", resp.Status, printable(string(answer)))
		}
	}
	return lines.Err()
}

// deliveryCommands makes `ordain hook list`, `show` and `redeliver`.
func deliveryCommands(r *remote) []*cobra.Command {
	var state string
	var limit int
	list := command(
		"list ENVIRONMENT",
		"List the webhooks of an environment and their outcomes, newest first",
		func(c *cobra.Command, args []string) error {
			path := "/api/v2/deliveries?limit=" + strconv.Itoa(limit)
			if state != "" {
				path += "&filter.state=" + escape(state)
			}
			var rows []row
			if err := r.in(c, args[0], get, path, nil, &rows); err != nil {
				return err
			}
			return r.show(c, rows, "received", "id", "forge", "name", "ref", "commit", "state", "reason")
		},
	)
	list.Flags().StringVar(&state, "state", "", "only these: waiting, started, skipped, failed or refused")
	list.Flags().IntVar(&limit, "limit", 50, "how many, at most 1000")
	show := command("show ENVIRONMENT ID", "Show all details of a webhook",
		func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], get, "/api/v2/deliveries/"+escape(args[1]), nil, &one); err != nil {
				return err
			}
			return r.showJSON(c, one)
		},
	)
	redeliver := command("redeliver ENVIRONMENT ID", "Process a webhook again, as if the forge had sent it again",
		func(c *cobra.Command, args []string) error {
			var one row
			if err := r.in(c, args[0], post, "/api/v2/deliveries/"+escape(args[1])+"/redeliver", row{},
				&one); err != nil {
				return err
			}
			return r.show(c, []row{one}, "received", "id", "forge", "name", "ref", "commit", "state", "reason")
		},
	)
	return []*cobra.Command{list, show, redeliver}
}
