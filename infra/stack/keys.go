package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"
)

// The number of days in which a removed key can be restored.
const (
	keyDaysRetained = 30
	keyDaysLeast    = 7
)

// addKeys adds a key for each name of signingKeys. A rotation takes three deployments, so that
// every function knows the key of every token: append the new name, move it to the front, and
// remove the old name after its last token has expired.
func (b *builder) addKeys() {
	days := keyDaysLeast
	if b.settings.Retain {
		days = keyDaysRetained
	}
	for _, name := range b.settings.SigningKeys {
		key := awskms.NewKey(b.stack, jsii.String("SigningKey"+name), &awskms.KeyProps{
			KeySpec: awskms.KeySpec_ECC_NIST_P256, KeyUsage: awskms.KeyUsage_SIGN_VERIFY,
			Description:   jsii.String("signs the tokens of workers, stage " + b.settings.Stage + ", key " + name),
			RemovalPolicy: awscdk.RemovalPolicy_DESTROY, PendingWindow: awscdk.Duration_Days(num(days)),
		})
		b.keys = append(b.keys, *key.KeyArn())
	}
}
