package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// An auditor verifies an exported ledger file without the database. The number and hash of
// the file's last seal (its head) were logged when the seal was written.
func ExampleVerify() {
	file, err := os.ReadFile("testdata/ledger.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	head, err := ledger.ParseHead("2:091ccdc510082737ae0da451b7e0ed6eecb516f572cceabcfc0b4dd8f7cd7c00")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := ledger.Verify(ledger.Read(bytes.NewReader(file)), head)
	fmt.Println(report.Entries, "entries, up to seal", report.Confirmed, "as they were:", err)

	altered := bytes.Replace(file, []byte(`"care_label":"restricted"`), []byte(`"care_label":"public"`), 1)
	_, err = ledger.Verify(ledger.Read(bytes.NewReader(altered)), head)
	var tampered *ledger.TamperError
	if errors.As(err, &tampered) {
		fmt.Println(tampered.Kind, "entry", tampered.Seq, "in line", tampered.Line)
	}

	_, err = ledger.Verify(ledger.Read(bytes.NewReader(file[:bytes.Index(file, []byte(`{"seal":2`))])), head)
	fmt.Println(err)
	// Output:
	// 3 entries, up to seal 2 as they were: <nil>
	// altered entry 1 in line 2
	// ledger: truncated: seal 2 and what follows it are missing: the head of seal 2 was kept, and the ledger ends at seal 1
}
