package sqs_test

import (
	"crypto/md5" //nolint:gosec // as the API does
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/sqs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

func TestPushesOfATenantAreOneGroup(t *testing.T) {
	t.Parallel()
	type request struct{ QueueURL, MessageBody, MessageGroupID, MessageDeduplicationID string }
	var got []request
	var fail error
	cfg := awstest.Serve(t, map[string]awstest.Call{"SendMessage": func(body json.RawMessage) (any, error) {
		var r struct {
			QueueURL               string `json:"QueueUrl"`
			MessageBody            string
			MessageGroupID         string `json:"MessageGroupId"`
			MessageDeduplicationID string `json:"MessageDeduplicationId"`
		}
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		got = append(got, request(r))
		return map[string]any{"MessageId": "m", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(r.MessageBody)))}, fail //nolint:gosec // as the API does
	}})
	p, err := sqs.NewPushes(cfg, queue+".fifo")
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range [][2]string{{"a", "1"}, {"a", "2"}, {"a", "1"}, {"ä/b", "1"}} {
		if err := p.Push(t.Context(), each[0], each[1]); err != nil {
			t.Fatal(err)
		}
	}
	if got[0].QueueURL != queue+".fifo" || got[0].MessageBody != `{"tenant":"a"}` || got[3].MessageBody != `{"tenant":"ä/b"}` {
		t.Errorf("got %+v, want the tenants", got)
	}
	if got[0].MessageGroupID != got[1].MessageGroupID || got[0].MessageGroupID == got[3].MessageGroupID {
		t.Errorf("got %+v, want a group for each tenant", got)
	}
	if got[0].MessageDeduplicationID == got[1].MessageDeduplicationID || got[0].MessageDeduplicationID != got[2].MessageDeduplicationID ||
		got[0].MessageDeduplicationID == got[3].MessageDeduplicationID {
		t.Errorf("got %+v, want an id for each tenant and reason", got)
	}
	fail = awstest.Refusal{Code: "AccessDenied", Status: http.StatusForbidden}
	if err := p.Push(t.Context(), "a", "1"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
	if _, err := sqs.NewPushes(cfg, ""); err == nil {
		t.Error("got no error without a URL")
	}
}
