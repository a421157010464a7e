package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"
)

// The days that a key which was taken out can still be brought back.
const (
	keyDaysRetained = 30
	keyDaysLeast    = 7
)

// addKeys makes a key per name of signingKeys. A rotation is three deployments,
// so that no function meets a token of a key that it does not know: add the new
// name behind the old one, put it first, and take the old one out when its last
// token has expired.
func (h *house) addKeys() {
	days := keyDaysLeast
	if h.settings.Retain {
		days = keyDaysRetained
	}
	for _, name := range h.settings.SigningKeys {
		key := awskms.NewKey(h.stack, jsii.String("SigningKey"+name), &awskms.KeyProps{
			KeySpec: awskms.KeySpec_ECC_NIST_P256, KeyUsage: awskms.KeyUsage_SIGN_VERIFY,
			Description:   jsii.String("signs the tokens of workers, stage " + h.settings.Stage + ", key " + name),
			RemovalPolicy: awscdk.RemovalPolicy_DESTROY, PendingWindow: awscdk.Duration_Days(num(days)),
		})
		h.keys = append(h.keys, *key.KeyArn())
	}
}
