package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestBodiesRoundTrip reads the examples of the worker contract and writes them
// back with the same members.
func TestBodiesRoundTrip(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		shape any
		text  string
	}{
		"started": {new(contract.TaskStarted), `{"attempt":1,"workerId":"worker-abc123","startedAt":"2025-01-15T10:00:00Z"}`},
		"heartbeat": {new(contract.TaskHeartbeat), `{"attempt":1,"workerId":"worker-abc123",
			"heartbeatAt":"2025-01-15T10:05:00Z","progressPct":45,"message":"Processing partition 5 of 10"}`},
		"success": {new(contract.TaskCompleted), `{"attempt":1,"workerId":"worker-abc123","outcome":"SUCCEEDED",
			"completedAt":"2025-01-15T10:30:00Z","output":{"materializationId":"mat_1","rowCount":1000000,
			"byteSize":52428800,"outputPath":"gs://bucket/tenant/"},"metrics":{"cpuTimeMs":45000,"own":[1]}}`},
		"failure": {new(contract.TaskCompleted), `{"attempt":1,"workerId":"worker-abc123","outcome":"FAILED",
			"completedAt":"2025-01-15T10:30:00Z","error":{"category":"USER_CODE","message":"KeyError",
			"stackTrace":"Traceback","retryable":false}}`},
		"cancelled": {new(contract.TaskCompleted), `{"attempt":1,"workerId":"worker-abc123","outcome":"CANCELLED",
			"completedAt":"2025-01-15T10:15:00Z","cancelledDuringPhase":"processing",
			"partialProgress":{"recordsProcessed":500000,"lastCheckpoint":"partition-5"}}`},
		"heartbeat answer": {new(contract.HeartbeatAnswer), `{"acknowledged":true,"shouldCancel":true,
			"cancelReason":"user_requested","serverTime":"2025-01-15T10:05:00Z"}`},
		"renewal": {new(contract.HeartbeatAnswer), `{"acknowledged":true,"shouldCancel":false,"serverTime":"2025-01-15T10:05:00Z",
			"taskToken":"t","tokenExpiresAt":"2025-01-15T12:00:00Z",
			"output":{"url":"http://b/o","key":"o","expiresAt":"2025-01-15T12:00:00Z"}}`},
		"metrics": {new(contract.TaskMetrics), `{"cpuTimeMs":45000,"peakMemoryBytes":2147483648,"ioReadBytes":0,"ioWriteBytes":52428800}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := json.Unmarshal([]byte(row.text), row.shape); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(row.shape)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(members(t, []byte(row.text)), members(t, again)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEnvelopeOmitsUnknownMembers checks that unknown values are absent, not zero.
func TestEnvelopeOmitsUnknownMembers(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(contract.TaskEnvelope{
		TaskID: "t", RunID: "r", TenantID: "default", WorkspaceID: "default", Attempt: 1,
		CallbackBaseURL: "http://c", TaskToken: "token", TokenExpiresAt: time.Unix(0, 0).UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"taskId":"t","runId":"r","tenantId":"default","workspaceId":"default","attempt":1,` +
		`"callbackBaseUrl":"http://c","taskToken":"token","tokenExpiresAt":"1970-01-01T00:00:00Z"}`
	if string(text) != want {
		t.Errorf("got envelope\n%s\nwant\n%s", text, want)
	}
}

// TestCategoriesAreThoseOfFaults compares the categories with package fault.
func TestCategoriesAreThoseOfFaults(t *testing.T) {
	t.Parallel()
	faults := []fault.Category{
		fault.UserCode, fault.DataQuality, fault.Infrastructure, fault.Configuration, fault.Timeout, fault.CategoryCancel,
	}
	for i, category := range contract.Categories() {
		if category != string(faults[i]) {
			t.Errorf("got category %s, want %s", category, faults[i])
		}
	}
	for category, want := range map[string]bool{
		"USER_CODE": true, "DATA_QUALITY": false, "INFRASTRUCTURE": true, "CONFIGURATION": false, "TIMEOUT": true, "CANCELLED": false, "OTHER": false,
	} {
		if contract.RetryableByDefault(category) != want {
			t.Errorf("RetryableByDefault(%s): got %t, want %t", category, !want, want)
		}
	}
}

func members(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
