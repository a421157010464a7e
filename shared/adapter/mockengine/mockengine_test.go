package mockengine_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

func TestMock(t *testing.T) {
	t.Parallel()
	planned := map[porttest.EngineFault]mockengine.Failure{
		porttest.EngineIsBusy: mockengine.FailBusy, porttest.EngineFails: mockengine.FailStart, porttest.EngineResets: mockengine.FailReset,
		porttest.EngineEndsEarly: mockengine.FailEarly, porttest.EngineSendsError: mockengine.FailError, porttest.EngineStalls: mockengine.FailStall,
	}
	porttest.Engine(t, func(*testing.T) porttest.EngineHarness {
		now := clock.NewVirtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		mock := mockengine.New(mockengine.Config{Clock: now})
		return porttest.EngineHarness{
			Engine: mock, Clock: now, Model: "mock", Messages: true, Stops: true, Names: true, Vectors: true, Reasons: true, Calls: true, Counts: true,
			Idle:    func(*testing.T) { mock.WaitRunning(0) },
			Fault:   func(_ *testing.T, how porttest.EngineFault, pieces int) { mock.FailNext(planned[how], pieces) },
			Begun:   func(*testing.T) { mock.WaitRunning(1) },
			Loading: func(_ *testing.T, loading bool) { mock.SetLoading(loading) },
		}
	})
}
