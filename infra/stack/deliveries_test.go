package stack_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/cost"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestPolledQueuesAreCounted compares the queues that invoke functions with those in the cost
// of a month without a run. Each such queue is polled all the time.
func TestPolledQueuesAreCounted(t *testing.T) {
	t.Parallel()
	got := map[cost.Kind]int{}
	for _, mapping := range deployed(t).Of("Lambda::EventSourceMapping") {
		for _, queue := range deployed(t).Of("SQS::Queue") {
			if mapping.Text("EventSourceArn") != "${"+queue.ID+".Arn}" {
				continue
			}
			kind := cost.QueueRequests
			if queue.Text("FifoQueue") == "true" {
				kind = cost.FIFORequests
			}
			got[kind]++
		}
	}
	if want := cost.PolledQueues(); !maps.Equal(got, want) {
		t.Errorf("got queues %v, want %v", got, want)
	}
}

// TestQueueOfWebhooks checks that a message is hidden while a function processes it, is
// received again after a failure, and goes to the dead-letter queue after the last one.
func TestQueueOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, made := range []template.Template{deployed(t), everything(t)} {
		queue, mapping := named(t, made, "SQS::Queue", "Deliveries"), named(t, made, "Lambda::EventSourceMapping", "Delivering")
		hidden, err := strconv.Atoi(queue.Text("VisibilityTimeout"))
		takes, err2 := strconv.Atoi(functionOf(t, made, "deliver").Text("Timeout"))
		if err != nil || err2 != nil || hidden < 6*takes {
			t.Errorf("got messages hidden for %d s, want at least six times the function's %d s", hidden, takes)
		}
		if takes <= 20+15 {
			t.Errorf("got a timeout of %d s, want more than an attempt and what the function keeps for the last one", takes)
		}
		expect(t, queue, "true", "SqsManagedSseEnabled")
		expect(t, queue, "5", "RedrivePolicy", "maxReceiveCount")
		if target := queue.Text("RedrivePolicy", "deadLetterTargetArn"); target != "${DeadLetters.Arn}" {
			t.Errorf("got the dead-letter queue %s, want DeadLetters", target)
		}
		expect(t, mapping, "${Deliveries.Arn}", "EventSourceArn")
		if types := mapping.Text("FunctionResponseTypes"); !strings.Contains(types, "ReportBatchItemFailures") {
			t.Errorf("got response types %s, want ReportBatchItemFailures", types)
		}
		if function := mapping.Text("FunctionName"); !strings.Contains(function, "Deliver") {
			t.Errorf("got the function %s, want deliver", function)
		}
		for _, name := range []string{"deliver", "relay", "webhooks", "export"} {
			expect(t, functionOf(t, made, name), "${Deliveries}", "Environment", "Variables", "SORTIE_DELIVERIES")
		}
	}
}

// TestQueuesDoNotTakeTheAccount checks the functions that call themselves again, by a queue or
// directly. Lambda does not stop them, and a queue does not use all executions of the account.
func TestQueuesDoNotTakeTheAccount(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{"default": deployed(t), "everything": everything(t)} {
		for _, f := range made.Of("Lambda::Function") {
			want := ""
			for _, continuing := range []string{"deliver", "dispatch", "push"} {
				if strings.HasSuffix(f.Text("FunctionName"), "-"+continuing) {
					want = "Allow"
				}
			}
			if got := f.Text("RecursiveLoop"); got != want {
				t.Errorf("%s: %s: got RecursiveLoop %q, want %q", name, f.ID, got, want)
			}
		}
		for _, m := range made.Of("Lambda::EventSourceMapping") {
			queue := !strings.Contains(m.Text("EventSourceArn"), "Stream")
			limit, err := strconv.Atoi(m.Text("ScalingConfig", "MaximumConcurrency"))
			if queue && (err != nil || limit < 2 || limit > 100) || !queue && err == nil {
				t.Errorf("%s: %s: got MaximumConcurrency %d, %v, want a limit for a queue alone", name, m.ID, limit, err)
			}
		}
	}
}
