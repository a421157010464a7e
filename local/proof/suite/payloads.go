package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func payloads() []Test {
	return []Test{
		{Name: "events of a run name what it runs", Requires: []Capability{Programs}, Run: runsNameTheirPayload},
	}
}

// payload computes the payload digest of a job's run, as events/README.md describes.
func (c *Case) payload(path string, version int, parameters map[string]string, override document) string {
	c.T.Helper()
	definition := outside.Get[map[string]any](c.Client, fmt.Sprintf("%s/versions/%d", path, version))
	for _, name := range []string{"version", "updatedAt", "updatedBy"} {
		delete(definition, name)
	}
	maps.Copy(definition, override)
	digest, err := events.Digest(outside.Encode(c.T, document{"parameters": parameters, "definitionVersion": version, "definition": definition}))
	if err != nil {
		c.T.Fatal(err)
	}
	return digest
}

func runsNameTheirPayload(c *Case) {
	after := newestCursor(c.Client)
	job := script("true").with("env", document{"B": "2", "A": "1 < 2 & \u00e9"}).with("name", "d\u00e9j\u00e0 vu")
	path := c.job("payload", job)
	one := map[string]string{"A": "<1>", "C": "3"}
	first := c.endOf(path, one)
	retried, _ := send[contract.RetryAccepted](c, http.MethodPost, "/v1/runs/"+url.PathEscape(first.RunID)+"/retry", "", http.StatusAccepted)
	plain := c.endOf(path, nil)
	at := c.soon(path, 3*time.Second)
	later, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", fmt.Sprintf(`{"scheduledAt": %q}`, at.Format(time.RFC3339)), http.StatusAccepted)
	send[json.RawMessage](c, http.MethodPut, path, string(outside.Encode(c.T, job.with("name", "changed"))), http.StatusOK)
	urgent, _ := send[contract.RunAccepted](c, http.MethodPost, path+"/runs", ` { "priority" : "interactive", "parameters" : {"C":"3","A":"\u003c1>"} }`, http.StatusAccepted)
	for task, want := range map[string]struct {
		version int
		digest  string
	}{
		first.TaskID:   {1, c.payload(path, 1, one, nil)},
		retried.TaskID: {1, c.payload(path, 1, one, nil)},
		plain.TaskID:   {1, c.payload(path, 1, map[string]string{}, nil)},
		later.TaskID:   {2, c.payload(path, 2, map[string]string{}, nil)}, // the newest version at its time
		urgent.TaskID:  {2, c.payload(path, 2, one, document{"priority": "interactive"})},
	} {
		c.End(task)
		for _, e := range c.publishedUntilEnd(after, url.Values{"taskId": {task}}, task) {
			if task == later.TaskID && e.EventType == eventtype.Accepted {
				continue // it was accepted with the earlier version
			}
			if e.Job != nil && (e.Job.PayloadDigest != want.digest || e.Job.DefinitionVersion != int64(want.version)) {
				c.T.Errorf("%s of %s: got %s of version %d, want %+v", e.EventType, task, e.Job.PayloadDigest, e.Job.DefinitionVersion, want)
			}
		}
	}
}
