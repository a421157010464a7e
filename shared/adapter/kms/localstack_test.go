//go:build localstack

package kms_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestSignerOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	porttest.Signer(t, func(t *testing.T) (port.Signer, func() port.Signer) {
		t.Helper()
		var keys []string
		for range 2 {
			var made struct{ KeyMetadata struct{ KeyId, Arn string } }
			awstest.Prepare(t, cfg, "TrentService.CreateKey", map[string]any{"KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY"}, &made)
			keys = append(keys, made.KeyMetadata.Arn)
		}
		again := func() port.Signer { return signer(t, cfg, keys...) }
		return again(), again
	})
}
