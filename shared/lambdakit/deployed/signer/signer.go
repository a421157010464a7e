// Package signer makes the Signer of a deployed function: keys of KMS.
package signer

import (
	"github.com/sortie-dev/sortie/shared/adapter/kms"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// New reads SORTIE_KEYS, the ids or ARNs of the keys; the first signs.
func New(p *process.Process) port.Signer {
	signer, err := kms.New(p.AWS(), p.List("SORTIE_KEYS", "")...)
	p.Check(err)
	return signer
}
