// Package aws stands in for the AWS SDK's.
package aws

func String(v string) *string { return &v }

func ToString(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func Int64(v int64) *int64 { return &v }
