package command

import (
	"strconv"
	"sync"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// connection reports that the server of a run is lost, and that it answers again.
type connection struct {
	app    *app
	TaskID string

	mu   sync.Mutex
	lost bool
}

// patient returns a client that retries calls while the server is unreachable. It notes the
// outage at once, and says that the run continues.
func (a *app) patient(c *client.Client, taskID string) *client.Client {
	n := &connection{app: a, TaskID: taskID}
	return c.WithRetry(outage, n.failed).WithContact(n.restored)
}

func (n *connection) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		return
	}
	n.lost = true
	n.app.Note("%v; the run continues. Trying again until %s; follow it later with %s", err,
		n.app.Clock.Now().Add(outage).Format("15:04:05 MST"), n.app.howToFollow(n.TaskID))
}

func (n *connection) restored() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		n.lost = false
		n.app.Note("connected again")
	}
}

// howToFollow returns the command that follows a run.
func (a *app) howToFollow(taskID string) string {
	return strconv.Quote(a.Name + " logs " + taskID + " --follow")
}
