// Package deployed makes the adapters of a deployed Sortie from a process's
// variables, for bootstraps. No function makes a call.
//
// Its subpackage runner is separate, so that a small function does not link the clients of
// the platforms.
package deployed

import (
	"errors"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/kms"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// ttlGrace is how long the sweep leaves expired records to the table's TTL, which
// deletes them for nothing, usually within two days.
const ttlGrace = 72 * time.Hour

// scanAge is about how long a sweep without work takes: its parts share a scan.
const scanAge = 10 * time.Second

// Store returns the DynamoDB table of SORTIE_TABLE. SORTIE_PLAIN_ITEMS=true makes
// it store new records as plain JSON.
func Store(p *process.Process) *dynamo.Store {
	plain, err := strconv.ParseBool(p.Option("SORTIE_PLAIN_ITEMS", "false"))
	if err != nil {
		p.Check(errors.New("SORTIE_PLAIN_ITEMS: want true or false"))
	}
	store, err := dynamo.Open(p.AWS(), dynamo.Config{
		Table: p.Need("SORTIE_TABLE"), Clock: p.Clock(), PlainItems: plain, TTLGrace: ttlGrace, ScanAge: scanAge,
	})
	p.Check(err)
	return store
}

// Executions returns those of the state machine whose ARN is SORTIE_STATE_MACHINE.
func Executions(p *process.Process) port.Executions {
	executions, err := stepfunctions.New(p.AWS(), p.Need("SORTIE_STATE_MACHINE"))
	p.Check(err)
	return executions
}

// Signer returns the KMS keys of SORTIE_KEYS (ids or ARNs); the first one signs.
func Signer(p *process.Process) port.Signer {
	signer, err := kms.New(p.AWS(), p.NeedList("SORTIE_KEYS")...)
	p.Check(err)
	return signer
}
