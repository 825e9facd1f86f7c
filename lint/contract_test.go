package lint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func TestSourceOfAnOrganization(t *testing.T) {
	for _, tc := range []struct{ organization, source, says string }{
		{"", "kfm.soils.refresh", ""},
		{"kfm", "kfm.soils.refresh", ""},
		{"acme", "acme.billing.invoice-paid", ""},
		{"a-1", "a-1.b-2.3", ""},
		{"", "acme.billing.invoices", ""},
		{"", "acme.billing", "does not have the form <organization>.<domain>.<pipeline>"},
		{"acme", "kfm.soils.refresh", `of the organization "kfm", and only "acme"`},
		{"acme", "acmes.soils.refresh", `of the organization "acmes"`},
		{"acme", "acme.soils", "does not have the form"},
		{"acme", "acme.soils.refresh.again", "does not have the form"},
		{"acme", "", "does not have the form"},
		{"acme", "acme..refresh", `the label "", which is empty`},
		{"acme", "acme.Soils.refresh", `the label "Soils", which has 'S'`},
		{"acme", "acme.soils.-refresh", "begins or ends with a hyphen"},
		{"acme", "acme.soils.refresh-", "begins or ends with a hyphen"},
	} {
		fs := lint.Contract{Organization: tc.organization}.CheckSource(tc.source)
		if tc.says == "" {
			assert.Empty(t, fs, tc.source)
			continue
		}
		require.Len(t, fs, 1, tc.source)
		assert.Equal(t, "SF043", fs[0].Rule)
		assert.Contains(t, fs[0].Message, tc.says, tc.source)
	}
}

func TestOrganizationIsALabel(t *testing.T) {
	for _, name := range []string{"", "kfm", "acme", "3m", "a-b"} {
		assert.Empty(t, lint.Contract{Organization: name}.CheckOrganization(), name)
	}
	for _, name := range []string{"Acme", "acme.eu", "acme ", "-acme", "acme-", "ä", "kfm\n"} {
		fs := lint.Contract{Organization: name}.CheckOrganization()
		require.Len(t, fs, 1, name)
		assert.Equal(t, "organization", fs[0].Field)
	}
}

func TestMessageOfAnOrganization(t *testing.T) {
	body := strings.Replace(goodBody, `"event_source":"kfm.`, `"event_source":"acme.`, 1)
	require.NotEqual(t, goodBody, body)
	ofKFM := func(fs []lint.Finding) {
		t.Helper()
		require.Len(t, fs, 1)
		assert.Equal(t, "SF043", fs[0].Rule)
		assert.Equal(t, "/event_source", fs[0].Pointer)
	}
	ofKFM(lint.Check(lint.Message{Body: body, GroupID: "g", Organization: "kfm"}))
	ofKFM(lint.Contract{Organization: "kfm"}.CheckBody(body))
	ofKFM(lint.NewQueueChecker().Check(start, lint.Message{Body: body, GroupID: "g", Organization: "kfm"}))
	for _, organization := range []string{"", "acme"} {
		assert.Empty(t, lint.Check(lint.Message{Body: body, GroupID: "g", Organization: organization}))
		assert.Empty(t, lint.Contract{Organization: organization}.CheckBody(body))
		assert.Empty(t, lint.NewQueueChecker().Check(start, lint.Message{Body: body, GroupID: "g", Organization: organization}))
	}
	assert.Empty(t, lint.CheckBody(body))
	assert.NotEmpty(t, lint.Check(lint.Message{Body: goodBody, GroupID: "g", Organization: "acme"}), "of the Kansas Frontier Matrix")
}
