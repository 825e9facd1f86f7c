package main

// module is an entry of the corpus.
type module struct {
	path, version string
	sum           string // as in go.sum
	packages      []string
	// control marks a module that uses only standard queues. Only findings of rule SF015
	// are allowed.
	control bool

	// git is true for a module that the module proxy may refuse. If a local repository (flag
	// -git) has the module, the module is read from there, otherwise from the proxy. If the
	// proxy refuses it, the module is skipped.
	git    bool
	subdir string // folder of the module in its repository

	// requires lists the requirements (path@version) for a module without a go.mod.
	requires []string
}

// corpus lists modules that send to SQS or SNS, and control modules, which use only
// standard queues. Every public module proxy serves the modules whose field `git` is false.
var corpus = []module{
	{path: "gocloud.dev", version: "v0.47.0", sum: "h1:qN4/0vtutn97f1X5ziisf3WXuaFL9AR0FIRnyJRYzgA=", packages: []string{"./pubsub/awssnssqs/..."}},
	{path: "github.com/prometheus/alertmanager", version: "v0.34.2", sum: "h1:4oOnHs4J41X9n+7MucFjA3I5i5MtasjWTnIY27q5Qkw=", packages: []string{"./notify/..."}},
	{path: "github.com/argoproj/notifications-engine", version: "v0.5.0", sum: "h1:ZSIY4wwWvudYhryUclPnvajzz+KvEgHI5J6sDwBLByU=", packages: []string{"./pkg/services/..."}},
	{path: "gopkg.in/DataDog/dd-trace-go.v1", version: "v1.74.8", sum: "h1:h96ji92t9eXbPvSWhJ+lrPWetHiQNYlt48JKRO09NFA=", packages: []string{"./contrib/aws/..."}},
	{path: "go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-sdk-go-v2/otelaws", version: "v0.72.0", sum: "h1:ddEa1svIlpFtku1zdMRl7rAZ0NMlyO8QPnPfY5MQzpg=", packages: []string{"./..."}},
	{path: "sigs.k8s.io/cluster-api-provider-aws/v2", version: "v2.13.0", sum: "h1:yQz7GBrIkPLuEJ5MXNuZ/6eUssTJK8reUnZ6t5QIPnU=", packages: []string{"./exp/instancestate/...", "./pkg/cloud/services/instancestate/..."}, control: true},
	{path: "github.com/aws/aws-sdk-go", version: "v1.55.8", sum: "h1:JRmEUbU52aJQZ2AjX4q4Wu7t4uZjOu71uyNmaWlUkJQ=", packages: []string{"./example/aws/request/httptrace"}, control: true},
	{path: "github.com/lzap/dejq", version: "v0.0.0-20230219091040-ed6b82db3eb9", sum: "h1:7tNgbU19KoByxbw20TWGS+kcf2kR2GSY5BTG14ARh2s=", packages: []string{"./sqs/..."}, git: true},
	{path: "github.com/ThreeDotsLabs/watermill-amazonsqs", version: "v0.0.0-20241015190622-c9cd192b3823", sum: "h1:ODBCuqLMkEm/q3thJEMv3JKbUjQJAkGhKCdjw3ByRUQ=", packages: []string{"./sqs", "./sns"}, git: true},
	{path: "github.com/engelmi/go-sqs", version: "v0.0.0-20231013091248-ece02acf1508", sum: "h1:HLZifga2HfRz8REJY4Vdeq13wOSiKj8n0ghn6R4cF6g=", packages: []string{"./..."}, git: true},
	{path: "github.com/evalphobia/aws-sdk-go-v2-wrapper", version: "v0.0.0-20210901071904-e4f1778d6cfb", sum: "h1:3QZlKdn8huhskQxLx7JIUR0n5iq5FLLR7VtQpajsBeI=", packages: []string{"./sqs"}, git: true},
	{path: "github.com/italolelis/outboxer", version: "v0.0.0-20231106112956-73a984850bdd", sum: "h1:SpAdDxf/euNyrWGrrhJ5kS9K8eY8JQxfx+d8XJxZyc4=", packages: []string{"./es/sqs"}, git: true},
	{path: "github.com/nircoren/lightblocks", version: "v0.0.0-20240827185125-8b239674d4f3", sum: "h1:wdzNdE4TTJieVB4oWDo33qJPnez520h1OcG7qoIVu/w=", packages: []string{"./..."}, git: true},
	{path: "github.com/minhlong/go-aws-boilerplate", version: "v0.0.0-20230616091914-6dbf33d2b18a", sum: "h1:AgBWa9qLWCSvZ+3zUg4xlkh/eu7plMqJKt8EoXFfGmw=", packages: []string{"./..."}, git: true},
	{path: "github.com/reading-tribe/anansi", version: "v0.0.0-20230318181017-18a9005cc6c5", sum: "h1:B2XJIWyvOVk+97rsomf7y4FO9vHl7BGpMFaSojPJkFY=", packages: []string{"./..."}, git: true},
	{path: "github.com/whywaita/myshoes-serverless-aws", version: "v0.0.0-20231130195553-b586d89f3d7b", sum: "h1:0R/F7aQKHZdwla3NAf7rpZJrhRSrRO5Q/On4cswKfpk=", packages: []string{"./..."}, git: true},
	{path: "github.com/slackmgr/plugins/sqs", version: "v0.0.0-20260226170417-1fe0ca8d7fd3", sum: "h1:j1CX05y17jDmvlZpj63kfZ5PfcAtaXJJahVc61v9dGU=", packages: []string{"./..."}, git: true, subdir: "sqs"},
	{path: "github.com/velmie/broker/sqs", version: "v0.0.0-20251218205906-e451431ca807", sum: "h1:ZqA+RlZ3kvJOeY4SAiFtq3ZrQ5bWrR2mM322KzZGGwM=", packages: []string{"./..."}, git: true, subdir: "sqs"},
	{path: "github.com/velmie/broker/sns", version: "v0.0.0-20251218205906-e451431ca807", sum: "h1:gB4+SRmdjm/SyB/q55l4ISgRhTADvaDgJxic5x9dZw4=", packages: []string{"./..."}, git: true, subdir: "sns"},
	{path: "github.com/canhlinh/sqsworker", version: "v0.0.0-20181101095112-da5baafb357d", sum: "h1:qfHvzRO5w1gupOGzVOA79/HqZTJsJITbwszqxixsjxo=", packages: []string{"./..."}, git: true},
	{path: "github.com/tigaron/manga-scraper-backend-go", version: "v0.0.0-20221009073937-93f606d801cd", sum: "h1:WF7ARc1HpW777SEeyj3Hx5hpJxHtXRjxf/RwSM6cSnA=", packages: []string{"./..."}, git: true},
	{path: "github.com/vietnam-immigrations/go-utils/v2", version: "v2.0.0-20221106080459-7bf3babdb9dd", sum: "h1:9zQlPmM/Pr4zrWbuGGTiXDrJI/Tr6ex5Q2OqG+lFOaY=", packages: []string{"./pkg/cv"}, git: true},
	{path: "github.com/Luismorlan/newsmux", version: "v0.0.0-20220111213943-f2d0e5d55687", sum: "h1:F4bSzdnrdYwifHE3vMokkQGo9iZW0pZ/fV2kzc2+Uvk=", packages: []string{"./collector/sink"}, git: true},
	{path: "github.com/nabeken/aws-go-sqs/v4", version: "v4.0.0-20260807230617-6cadf813b070", sum: "h1:bxJh+Jg+usz2gj3l3Jqw5Vzoe4FtNI7tTl8GI1c20M4=", packages: []string{"./..."}, git: true},
	{path: "github.com/Vonage/gosrvlib", version: "v0.0.0-20260625111659-443ca211fdba", sum: "h1:PYlRqgDLg2q3pKjkMGDt9tXndi2ETNs+B7OyphxGUmY=", packages: []string{"./pkg/sqs"}, git: true},
	{path: "github.com/rmarasigan/bus-ticketing", version: "v0.0.0-20230810032309-fb0eb12ae214", sum: "h1:sQ6z44Orw6d0fUfXWTshnnX5T6DEwswgF/sj9PCcnjY=", packages: []string{"./internal/..."}, git: true},
	{path: "github.com/cortexlabs/cortex", version: "v0.0.0-20230304051944-dc48c02ed50a", sum: "h1:hDqxp1zpuGn16SD2EPLObiLej3Q7nY0loZCLDwt1MzY=", packages: []string{"./pkg/enqueuer", "./pkg/async-gateway", "./pkg/dequeuer"}, git: true},
	{path: "github.com/go-jwdk/aws-sqs-connector", version: "v0.0.0-20220620055753-ffda291bd9cb", sum: "h1:ywtyNxKh2N8SXH+tf1HdcUj1hWhNMt7GABdZEwMsA2A=", packages: []string{"./..."}, git: true},
	{path: "github.com/massdriver-cloud/terraform-provider-massdriver", version: "v0.0.0-20240606172155-9c64506b765f", sum: "h1:SxckeKUde0NIpa68MJPm0qxE+dzkfFYfzfaQxB3MFD4=", packages: []string{"./massdriver"}, git: true},
	{path: "github.com/esvm/tcc/producer", version: "v0.0.0-20211222234127-18183dcf1270", sum: "h1:ZKbpiDO9Y/7sMxiW79DXKPOziY1Xuy9AtZrTkCGSQ2c=", packages: []string{"./..."}, git: true, subdir: "producer"},
	{path: "github.com/worldcoin/sqs-client", version: "v0.0.0-20251027092540-2fa753e9a477", sum: "h1:Zwc6X4Dzly/M74klkOGEIA7Q4Iiyn1rc3wTbry7vztA=", packages: []string{"./..."}, git: true},
	{path: "github.com/GoLogann/chat-service", version: "v0.0.0-20250208221754-2eca541c29d9", sum: "h1:TBIiXMFUcvpSbC0WWFGlTplY694E3E8C9NS4NCyAVoo=", packages: []string{"./..."}, git: true},
	{path: "github.com/Shavakan/runs-fleet", version: "v0.0.0-20260821094922-2bb470342323", sum: "h1:5kgrb6lM3UfilHew7NHA4RJGB5PrE4A4ej43joFN11U=", packages: []string{"./pkg/queue", "./pkg/agent", "./pkg/cost"}, git: true},
	{path: "github.com/pufferfs/pufferfs", version: "v0.0.0-20260713075937-be098238e72f", sum: "h1:0g3luitefwhbBRboFcRw99jenRNQvFAjRWxSSlLM+eQ=", packages: []string{"./internal/queue/..."}, git: true},
	{path: "github.com/babelqueue/babelqueue-go/sqs", version: "v0.0.0-20260621081403-8f09695b74d4", sum: "h1:WMvGi9Vbls13cbpOPz+tJDRzhc1lVvpDrq3QVK7ikAo=", packages: []string{"./..."}, git: true, subdir: "sqs"},
	{path: "github.com/ln80/storer", version: "v0.0.0-20220713173850-3c5e56bc9c3e", sum: "h1:QA1VBZUW5lSA9t5jv5ilt22+qsBvxW864O3w0s/FPAs=", packages: []string{"./..."}, git: true},
	{path: "github.com/mashiike/canyon", version: "v0.0.0-20260820064307-93b245c892b5", sum: "h1:6+LCp4YfnxmdEJKWCgR3V/p4gsWWLG8jO5pYdeUuhiU=", packages: []string{"./..."}, git: true},
	{path: "github.com/anicoll/unicom", version: "v0.0.0-20260820223744-370a8ae86bb7", sum: "h1:rKKvIdyMoufwHG1RkFcHNN7psh0AY3266ORc0Z/DnRE=", packages: []string{"./internal/responsechannel"}, git: true},
	{path: "github.com/tecnickcom/nurago", version: "v0.0.0-20260715091514-9a1faa0174c4", sum: "h1:O2vCdXFEuZQscE6X4i9NKil1Nxi3VWVlVjpCjwF2uvY=", packages: []string{"./pkg/sqs/..."}, git: true},
	{path: "github.com/gorax/gorax", version: "v0.0.0-20260125194158-7fe08cb44970", sum: "h1:T3DmeLh6YPfCAPK/sTKu7hxxuGeg1cyV7zhJgqsW/lA=", packages: []string{"./internal/queue", "./internal/messaging", "./internal/integrations/aws", "./internal/communication/sms"}, git: true},
	{path: "github.com/nonchan7720/go-storage-to-messenger", version: "v0.0.0-20231105160753-86597e66f563", sum: "h1:/zg8bP3JAkmIgxkaHLJkfSGNhr0BjJzooowuJsBT7/M=", packages: []string{"./..."}, git: true},
	{path: "github.com/nyang64/nGX/pkg", version: "v0.0.0-20260516202328-900dcfcbf10a", sum: "h1:Ns+Id1/oJBzGr25zWGrfS22bbabVETWthK4UrbQEWv4=", packages: []string{"./..."}, git: true, subdir: "pkg"},
	{path: "github.com/ThreeDotsLabs/watermill-aws", version: "v0.0.0-20250826153022-2b9c00e5e7cc", sum: "h1:pnr6VuP8rn+tQTVKT3Dav1W4U1MVwIxy/5Z/ofDLNCg=", packages: []string{"./..."}, git: true},
	{path: "github.com/justtrackio/gosoline", version: "v0.0.0-20260807102257-e4336dfa0deb", sum: "h1:wDzCzF2FYJemhqNFAr8mtW2cHbk7OT41U/djReTQJDY=", packages: []string{"./pkg/cloud/aws/sqs/...", "./pkg/cloud/aws/sns/...", "./pkg/stream/..."}, git: true},
	{path: "encore.dev", version: "v0.0.0-20260821072501-2b626e8c70c5", sum: "h1:XyCq1RUAWjnm1WQ4rQzSXMIgqVtatdmhv0ovXhUEpkQ=", packages: []string{"./pubsub/..."}, git: true, subdir: "runtimes/go"},
	{path: "github.com/hanesi/GoPractice", version: "v0.0.0-20210217184054-fedf0f4cb9a6", sum: "h1:Jwcija0Lk3M4Q1AzKVRF27HZELy9F6nXn7AcF9zlmzI=", packages: []string{"./NCOA/LocalNCOASubmit", "./AlphaVantageStockAPI/AlphaVantage", "./AWS-SDK-Examples/Lambda/NCOASubmit", "./AWS-SDK-Examples/SQS"}, git: true, requires: []string{"github.com/aws/aws-sdk-go@v1.55.8", "github.com/aws/aws-lambda-go@v1.47.0", "github.com/google/uuid@v1.6.0", "github.com/joho/godotenv@v1.5.1"}},
	{path: "github.com/thykof/lightblocks-home-assignment", version: "v0.0.0-20240809161319-eba3c2194fc6", sum: "h1:fp7RU5pe1+wCCiE7yRDZzwdKW+ao4q4WIOJq92SAw+A=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/aaronland/go-aws-sqs", version: "v0.0.0-20200528193609-b974b42e9fed", sum: "h1:3dLlvQ+ik0HZu4lHC3R7/XY7XD7555Qp2rrEnmEYHbY=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/akhettar/sqs-pub", version: "v0.0.0-20210601121407-cb7b199d9604", sum: "h1:AfiLeTGIQGMNzPdZpG7TDL+czVp2dZn/IfQh1FI/Htg=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/larwef/kitsune", version: "v0.0.0-20200613191040-946d4ee777ea", sum: "h1:2CWEN7ZTq0Cc/K+qxuheJXdM2nMq1yVP20OcE2lYT5I=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/lob/event-forwarder", version: "v0.0.0-20191031172806-e3a69b541f3f", sum: "h1:R0USNVR3NbR1egYhvfol5RsRCwZr2+u7C3Y9mCbRHO0=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/nikolayk812/pgx-outbox", version: "v0.0.0-20250904092047-90b363dd2ffe", sum: "h1:FvGzXP2aqHtQq3jdRjquY0JOZ6dMIT6xLGotygDAFsI=", packages: []string{"./sns"}, control: true, git: true},
	{path: "github.com/zerofox-oss/go-aws-msg", version: "v0.0.0-20250218185423-20b37e4ae1c5", sum: "h1:MhW8zC/QNzXhccd19MW9/2Izep9x7Ck+mUaiiZqfuR4=", packages: []string{"./sqs", "./sns"}, control: true, git: true},
	{path: "github.com/mailbadger/app", version: "v0.0.0-20220206145519-48afb6a42227", sum: "h1:PaG+EyVX6wG5L/K4M5Tfony13fDNcJpbiKTz9xppsaQ=", packages: []string{"./sqs", "./services/campaigns/..."}, control: true, git: true},
	{path: "github.com/jo-parker/sqs-hefty", version: "v0.0.0-20240910122433-89f5bcbefa5c", sum: "h1:979R2cQJWCi9YAh+wGijT3swJUXPLy8MuwI+R3vNWiU=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/berndhartzer/go-queue-worker", version: "v0.0.0-20200604105444-a09b9408544e", sum: "h1:7zC2NZfPvoAS1fSTzE0IDfzBfqbuf5VeKF0A+PFVftc=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/andreparelho/order-api", version: "v0.0.0-20260220013508-e59b0316d25b", sum: "h1:zVdoHrJvJuyhrhz6Lk3KGJQR7foga8FELzuWO6F25vo=", packages: []string{"./..."}, control: true, git: true},
	{path: "github.com/co-go/sqs-extended-client-go/v2", version: "v2.0.0-20260821175107-a8f93970215c", sum: "h1:uQdzfllvahCeoLSJZAJE8S9vEWEgJlRwRzTdGWynaJk=", packages: []string{"."}, control: true, git: true},
	{path: "github.com/kickback-app/common", version: "v0.0.0-20230409172328-0def427fb4fe", sum: "h1:dotG0ULMHeuH1aV4pN+sAlRn3DWav5cX37FdGEBR6JM=", packages: []string{"./sqs"}, control: true, git: true},
	{path: "github.com/brenonaraujo/go-sqs-producer/app", version: "v0.0.0-20230305013657-74a96abee6f0", sum: "h1:iS8FGHpFUbtpwqdEspfHvmhcfM9shDPDVqTf4/wmFiw=", packages: []string{"./..."}, control: true, git: true, subdir: "app"},
}

func (m module) String() string { return m.path + "@" + m.version }

func (m module) kind() string {
	if m.control {
		return "control"
	}
	return "sends"
}
