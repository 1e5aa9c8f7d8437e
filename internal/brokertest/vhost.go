package brokertest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// cleanupTimeout bounds the removal of what a test made, after its own context has ended.
const cleanupTimeout = time.Minute

// VHost creates a vhost for this test alone, in which the administrator may do everything, and deletes it
// with all it holds when the test ends. Its name is not the same twice.
func VHost(t testing.TB, b *Broker) string {
	t.Helper()
	name := uniqueName(t.Name())
	path := "/api/vhosts/" + url.PathEscape(name)
	// A busy broker may answer 500 and "timed out while waiting for the vhost to initialise", and is then asked again.
	WaitFor(t, func() (bool, string) {
		status, answer := Request(t, b, http.MethodPut, path, struct{}{})
		if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
			t.Fatalf("creating vhost %q: status %d: %s", name, status, answer)
		}
		return status < http.StatusMultipleChoices, fmt.Sprintf("creating vhost %q: status %d: %s", name, status, answer)
	})
	deleteAtEnd(t, b, path)
	permit(t, b, name, b.Username(), ".*", ".*", ".*")
	awaitEverywhere(t, b, path)
	return name
}

// awaitEverywhere waits until a vhost runs on every node of a cluster. A node that had not finished its own start when
// the vhost was created never hears of it (seen on 3.10: connections are refused because "vhost is down"), and is told.
func awaitEverywhere(t testing.TB, b *Broker, path string) {
	t.Helper()
	WaitFor(t, func() (bool, string) {
		status, answer := Request(t, b, http.MethodGet, path, nil)
		var vhost struct {
			Nodes map[string]string `json:"cluster_state"`
		}
		if err := json.Unmarshal(answer, &vhost); err != nil || status != http.StatusOK {
			return false, fmt.Sprintf("reading %s: status %d: %s", path, status, answer)
		}
		running := len(vhost.Nodes) > 0
		for node, state := range vhost.Nodes {
			if state != "running" {
				running = false
				Request(t, b, http.MethodPost, path+"/start/"+url.PathEscape(node), struct{}{})
			}
		}
		return running, fmt.Sprintf("where %s runs: %v", path, vhost.Nodes)
	})
}

// User creates a user with these permissions (regular expressions) in the vhost and these tags, and deletes
// it when the test ends. It returns the user's name and password.
func User(t testing.TB, b *Broker, vhost, configure, write, read string, tags ...string) (user, password string) {
	t.Helper()
	user, password = uniqueName("user"), rand.Text()
	path := "/api/users/" + url.PathEscape(user)
	mustRequest(t, b, http.MethodPut, path, map[string]string{"password": password, "tags": strings.Join(tags, ",")})
	deleteAtEnd(t, b, path)
	permit(t, b, vhost, user, configure, write, read)
	return user, password
}

func permit(t testing.TB, b *Broker, vhost, user, configure, write, read string) {
	t.Helper()
	path := "/api/permissions/" + url.PathEscape(vhost) + "/" + url.PathEscape(user)
	mustRequest(t, b, http.MethodPut, path, map[string]string{"configure": configure, "write": write, "read": read})
}

// deleteAtEnd deletes an object when the test ends. A dedicated broker may be stopped or down by then, on
// purpose: its objects go with it.
func deleteAtEnd(t testing.TB, b *Broker, path string) {
	t.Helper()
	t.Cleanup(func() {
		if b.isStopped() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		status, answer, err := b.request(ctx, http.MethodDelete, path, nil)
		switch {
		case err != nil:
			t.Logf("deleting %s: %v", path, err)
		case status >= http.StatusMultipleChoices && status != http.StatusNotFound:
			t.Errorf("deleting %s: status %d: %s", path, status, answer)
		}
	})
}

// uniqueName makes a name that is readable in a listing and needs no escaping.
func uniqueName(prefix string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		default:
			return '-'
		}
	}, prefix)
	return readable[:min(len(readable), 60)] + "-" + strings.ToLower(rand.Text()[:10])
}
