"""What looks like a secret is masked, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.recording import secrets
from gpu_tracker.recording.secret_forms import mask_words
from gpu_tracker.recording.secrets import mask_labels, mask_secrets, mask_text

# Words of a command, with {} in the place of a secret. A secret that is a word of its own may have any characters,
# one inside quotes any but those, one in a URL or script none that would end it.
WORDS = [
    *(["job", f"--{name}", "{}", "--lr", "1"] for name in ("password", "pass", "passphrase", "pwd", "token")),
    *(
        ["job", f"--{name}", "{}"]
        for name in ("access-key", "private_key", "auth", "bearer", "cookie", "hf-token")
    ),
    *(
        ["job", f"--{name}={{}}"]
        for name in ("apiKey", "client-secret", "credentials", "db_passwd", "secret")
    ),
    *(
        ["env", f"{name}={{}}", "job"]
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD")
    ),
    *(["env", f"{name}={{}}", "job"] for name in ("HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD_2", "MYSQL_PWD")),
    *(
        ["job", f"--{name}", "{}"]
        for name in ("wandb-key", "kaggle_key", "license-key", "openai-key", "PassWord", "signature", "otp")
    ),
    *(
        ["job", f"--{name}={{}}"]
        for name in ("wandb_key", "anthropic_key", "pin", "passwort", "mot-de-passe")
    ),
    *(["job", f"--{name}", "{}"] for name in ("passwords", "api-keys", "pw", "userpass", "access-keys")),
    *(["env", f"{name}={{}}", "job"] for name in ("API_KEYS", "PGPASS", "pw")),
    ["sshpass", "-p", "{}", "ssh", "-p", "22", "host"],
    ["/usr/bin/mysql", "-u", "me", "-p{}", "db"],
    *(["job", f"--{name}={{}}"] for name in ("dbpass", "root_pass", "smtpPass")),
    *(["redis-server", f"--{name}", "{}"] for name in ("requirepass", "masterauth")),
    ["smbclient", "-U", "me%{}", "share"],
    *(["nice", tool, "x", "-p{}", "archive"] for tool in ("7z", "/usr/bin/7za", "unrar", "mariadb-dump")),
    *([tool, "-u", "me", "-p", "{}", "db"] for tool in ("mongosh", "mongodump", "cqlsh", "rabbitmqadmin")),
    ["sshpass", "-p{}", "ssh", "-p22", "host"],
    ["docker", "login", "-u", "me", "-p", "{}", "host"],
    ["redis-cli", "-h", "host", "-a", "{}", "ping"],
    ["ldapsearch", "-x", "-w", "{}", "-b", "dc=x"],
    ["sqlcmd", "-S", "host", "-P", "{}"],
    ["docker", "run", "--env=DB_PASSWORD={}", "image"],
    ["docker", "run", "-eDB_PASSWORD={}", "image"],
    ["job", "++db.password={}"],
    ["job", "password:{}"],
    ["curl", "-u", "user:{}", "host"],
    ["curl", "--user=user:{}", "host"],
    ["curl", "-b", "{}", "host"],
    *([tool, "-P", "{}", "archive"] for tool in ("zip", "unzip")),
    ["openssl", "enc", "-aes-256-cbc", "-k", "{}"],
    *(["env", f"{name}={{}}", "job"] for name in ("GITHUB_PAT", "MY_PAT")),
    *([tool, "login", "{}"] for tool in ("wandb", "/usr/bin/vault")),
    ["aws", "configure", "set", "aws_secret_access_key", "{}"],
    ["curl", "-b", "{}", "-u{}", "host"],
    ["twine", "upload", "-u", "me", "-p", "{}", "dist/x.whl"],
    ["openssl", "aes-256-cbc", "-k", "{}"],
    ["/usr/bin/openssl", "-k", "{}"],
    ["job", "--token", "=", "{}", "--lr", "=", "1"],
    *(["job", option, "{}"] for option in ("--github-pat", "--rootpw", "--dbpwd")),
    ["psql", "password", "=", "{}"],
    ["env", "SharedAccessSignature={}", "job"],
]
QUOTED = [
    ["sh", "-c", "export DB_PASSWORD='{}'; job"],
    ["sh", "-c", 'job --token "{}" --lr 1'],
    ["job", '{{"password": "{}", "lr": 0.1}}'],
    ["job", '{{"db": {{"apiKey":"{}"}}}}'],
    ["job", '["--password", "{}"]'],
    ["python", "-c", "os.environ['HF_TOKEN'] = '{}'; main(3)"],
]
# A list or an object with a secret in it, which is masked as a whole; {} is in its place.
NESTED = [
    (["job", '{"secret_key":{}, "lr": 1}'], '["S"]'),
    (["job", '{"passwords":{}, "lr": [1]}'], '["a", "S]", {"b": "S"}]'),
    (["job", '--config={"db": {"password": {}}}'], '{"value": "S", "old": []}'),
    (["job", "{'api_key': {}}"], "['S', 'S']"),
    (["job", '{"password": {}'], '["S", "S'),
]
HEADERS = [
    ["curl", "-H", "Authorization: {}", "host"],
    ["curl", "-H", "Cookie: {}"],
    ["sh", "-c", "curl -H 'Authorization: {}' host"],
]
INSIDE = [
    ["sh", "-c", "7z a -p{} x.7z y && cc -pthread x.c"],
    ["sh", "-c", "mongosh -u me -p {} db; job -p 8080"],
    ["sh", "-c", "docker login -u me -p {} host && docker run -p 8080:80 image"],
    ["sh", "-c", "redis-cli -a {} ping"],
    ["sqlplus", "me/{}@host:1521/db"],
    ["sh", "-c", "/opt/sqlplus me/{}@db @script"],
    ["java", "-jar", "x.jar", "jdbc:oracle:thin:me/{}@host:1521:db"],
    ["job", "--webhook=https://hooks.slack.com/services/{}"],
    ["job", "https://discord.com/api/webhooks/{}"],
    ["job", "--dsn", "me/{}@db"],
    ["job", "--dsn=me/{}@host:1521/db"],
    ["sqlldr", "userid=me/{}@db"],
    ["job", "--connect", "me:{}@host/db"],
    ["env", "APP_DSN=me:{}@tcp(127.0.0.1:3306)/db", "job"],
    ["job", "--db", "me:{}@tcp(127.0.0.1:3306)/db"],
    ["sh", "-c", "mysql --password {} db"],
    ["sh", "-c", "mysql --password={} db && DB_TOKEN={} job"],
    ["sh", "-c", "curl -H 'X-Api-Key: {}' -u me:{} host"],
    ["sh", "-c", "mysql -u me -p{} db; ssh -p 22 host"],
    ["sh", "-c", "sshpass -p {} ssh -p 22 host"],
    ["curl", "https://host/x?X-Amz-Date=1&X-Amz-Signature={}&a=1"],
    ["curl", "https://host/x?X-Goog-Signature={}"],
    ["curl", "https://host/x?sig={}&se=2"],
    ["job", "Server=x;Password={};Port=1"],
    ["curl", "https://host/x?token={}&a=1"],
    ["curl", "--data=token={}&a=1"],
    ["job", "--config", "db:\n  password: {}\n  host: y"],
    ["job", "x: key: password: {}"],
    ["git", "https://user:{}@host/path?q=a@b"],
    ["git", "https://user:a@{}@host"],
    ["git", "https://{}@host/path"],
    ["git", "https://{}:x-oauth-basic@host/path"],
    ["job", "redis://:{}@host:6379/0"],
    *(["curl", f"https://host/x?{name}={{}}&a=1"] for name in ("key", "code")),
    ["sh", "-c", "wandb login {} && python train.py"],
    ["sh", "-c", "zip -P {} x.zip y && tar -P x"],
    ["sh", "-c", "twine upload -p {} dist/x.whl"],
    ["sh", "-c", "curl -u{} host; python -u train.py"],
    ["job", "--db-url", "me:{}@host/db"],
    ["env", "DATABASE_URL=me:{}@host/db", "job"],
    ["job", "<user>me</user><password>{}</password><port>1</port>"],
    ["job", "https://host/x?next=user%3Dme%26password%3D{}"],
]
SHAPES = [
    *("ghp_{}", "gho_{}", "github_pat_{}", "glpat-{}", "sk-{}", "sk-proj-{}", "hf_{}", "xoxb-{}", "npm_{}"),
    *(
        "AIza{}",
        "eyJhbGci.eyJzdWIi.{}",
        "sk_live_{}",
        "pypi-{}",
        "ya29.{}",
        "r8_{}",
        "nvapi-{}",
        "SG.{}.abcdefghijklmnop",
    ),
]
# What looks like the next field of a connection string ends a secret.
FIELD = re.compile(r"[&;]\s*[A-Za-z][\w.\-]*=")
ANYTHING = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6).filter(
    lambda text: (
        not (text.startswith(("--", "//")) or text.isdigit() or text[0].isspace() or FIELD.search(text))
    )
)
PLAIN = st.text("abcdefghijXYZ0123456789_+%^~.!", min_size=6).filter(lambda text: not text.isdigit())
KEYS = [
    ["job", "--key", "{}", "--lr", "1"],
    ["job", "--storage-key={}"],
    ["env", "APP_KEY={}", "job"],
    ["job", "--sas", "{}"],
    ["job", "--tokens={},{}"],
    ["job", "--my-super-Secret-thing", "{}"],
    ["job", "bearer", "{}"],
]
RANDOM = st.uuids().map(str) | st.from_regex(r"[0-9a-f]{16,40}", fullmatch=True).filter(
    lambda text: bool(re.search("[0-9][a-f].*[0-9]", text))
)
LETTERS = st.from_regex(r"[A-Za-z0-9]{30,40}", fullmatch=True)
# What people really run; more in the first test.
ORDINARY = """
python train.py --tokenizer gpt2 --max-tokens 5 --num_tokens=7 --token-limit 4 --password-file /x/y --key-column id
torchrun --nproc-per-node 4 train.py --lr 1e-4 --pad-token <pad> --data s3://bucket/a:b@c --url https://host:8080/x@y
docker run -u 1000:1000 image --author me --passes 3 --bypass 1 --compass north --no-auth --user=1000:1000
python -u train.py trainer.max_epochs=3 model.token_dim=4 ssh://me@host git@github.com:a/b.git postgres://me@host/db
accelerate launch --config_file c.yaml run.py --model meta-llama/Llama-3.1-8B --eos_token_id 2 --key value --keys a,b
env TOKENIZERS_PARALLELISM=false CUDA_VISIBLE_DEVICES=0,1 python -m module --output=/a/b:c --time=12:30 --auth-type basic
mpirun -np 8 ./solver --init_method tcp://10.0.0.1:2345 --special-tokens a,b --hidden_size 4096 task-transformers sk-learn
python -c print('token:',3) --pin-memory --signature-def x --spin 3 log(signature=infer(x)) ssh -p22 date -u +%Y-%m
cc -pthread -pipe x.c -lmysqlclient && ssh -p 2222 host && nc -p8080 && docker run -p 8080:80 -p127.0.0.1:1:1 image
job --key name.txt --key /home/me/.ssh/id_rsa --key=validation_loss_epoch_12 --key resnet50v2 --key validationLossEpoch12
job --connect host:5432 --connection me@host --dsn sqlite:///x.db --image org/name@v2 --connect org/name --db me/x@y
cp -a x y && grep -w word && mkdir -p /a/b && tar -P x && python -m zip -p x && cp -p mongo.txt y && ldd -w x
zip -r x.zip y && openssl dgst -k2 x && vault status && wandb login --relogin && git config set user.name me --pat *.py
job <token> --sas model.sas --secret-file key.txt bearer of news a = b --format <token></token> --proxy host:80 -up:x
job --password --verbose --secret-name x --use hf_transformers {"lr":0.1,"max_tokens":5} a=b=c=d=e=f=g=h=i=j=k=l
"""


def place(words: list[str], secret: str) -> list[str]:
    """The command with this secret in it."""
    return [word.format(*[secret] * word.count("{}")) if "{}" in word else word for word in words]


def check(words: list[str], secret: str) -> None:
    """Exactly the secret is masked."""
    masked = tuple(
        word.replace("a@***", "***").replace("***:x-oauth-basic", "***:***") for word in place(words, "***")
    )
    assert mask_secrets(place(words, secret)) == masked


def test_a_secret_after_an_option_with_nothing_behind_its_sign_is_masked() -> None:
    """A space too many must not reveal it."""
    command = ["job", "--token=", "hunter2", "--lr=", "1"]

    assert mask_secrets(command) == ("job", "--token=***", "***", "--lr=", "1")


@given(secret=ANYTHING)
def test_a_secret_in_a_word_of_its_own_is_masked_whole(secret: str) -> None:
    """Whatever its characters are."""
    for words in WORDS:
        check(words, secret)


@given(secret=ANYTHING)
def test_a_quoted_secret_is_masked_with_all_that_is_in_the_quotes(secret: str) -> None:
    """But the rest is kept."""
    for letter in "\\\"'":
        secret = secret.replace(letter, "_")
    for words in QUOTED:
        check(words, secret)


@pytest.mark.parametrize(("words", "value"), NESTED)
def test_a_list_or_an_object_with_a_secret_is_masked_whole(words: list[str], value: str) -> None:
    """Whatever is in it, but not what follows."""
    before, word = words

    assert mask_secrets([before, word.replace("{}", value)]) == (before, word.replace("{}", "***"))


def test_several_secrets_of_one_option_are_masked() -> None:
    """Up to the next option."""
    command = ["job", "--passwords", "abc", "def", "ghi", "--lr", "1", "-x", "2"]

    assert mask_secrets(command) == ("job", "--passwords", "***", "***", "***", *command[5:])


@given(secret=PLAIN)
def test_a_header_is_masked_whole(secret: str) -> None:
    """A scheme and a secret, or several fields."""
    for text in (secret, f"Bearer {secret}", f"a={secret}; b={secret}"):
        for words in HEADERS:
            check(words, text)


@given(secret=PLAIN)
def test_a_secret_inside_other_text_is_masked_without_the_rest(secret: str) -> None:
    """Scripts, URLs, forms, connection strings, files."""
    for words in INSIDE:
        check(words, secret)


@given(secret=RANDOM)
def test_a_key_that_looks_random_is_masked(secret: str) -> None:
    """Any other may be the name of a column or a file."""
    for words in KEYS:
        check(words, secret)


@given(secret=LETTERS)
def test_a_well_known_shape_is_masked_wherever_it_is(secret: str) -> None:
    """Without any name before it."""
    for word in (shape.format(secret) for shape in SHAPES):
        masked = mask_secrets(["job", word, f"x={word}", f"({word})", f"note {word}."])
        assert masked == ("job", "***", "x=***", "(***)", "note ***.")


@pytest.mark.parametrize(
    "words",
    [
        ["http", "Authorization:Bearer"],
        ["curl", "-H", "Authorization:", "Bearer"],
        ["curl", "--header=Authorization:", "token"],
    ],
)
def test_the_word_after_a_header_without_quotes_is_masked(words: list[str]) -> None:
    """After its scheme; what follows is kept."""
    *_, secret, host, option = mask_secrets([*words, "abcdef", "host", "--verbose"])

    assert (secret, host, option) == ("***", "host", "--verbose")
    assert mask_secrets([*words, "--verbose"])[-1] == "--verbose"


def test_a_secret_like_an_option_takes_nothing_with_it() -> None:
    """One that ends as a name of secrets does."""
    assert mask_secrets(["mysql", "-pmypassword", "-u", "root"]) == ("mysql", "-p***", "-u", "root")


@pytest.mark.parametrize("line", ORDINARY.strip().splitlines())
def test_ordinary_commands_come_through_unchanged(line: str) -> None:
    """Also through the forms themselves, without the quick look before them."""
    words = line.split()

    assert mask_secrets(words) == tuple(words)
    assert tuple(mask_words(words)) == tuple(words)


@given(
    st.lists(
        st.from_regex(r"(--?)?[a-z]{1,8}([-_=./][a-z0-9]{1,8}){0,3}", fullmatch=True).filter(
            lambda word: not any(name in word for name in secrets._NAMES)
        )
    )
)
def test_plain_words_come_through_unchanged(words: list[str]) -> None:
    """Options, paths and numbers."""
    assert tuple(mask_words(words)) == tuple(words)


@pytest.mark.parametrize("words", [*WORDS, *QUOTED, *HEADERS, *INSIDE, *KEYS, *([shape] for shape in SHAPES)])
def test_the_quick_look_misses_nothing(words: list[str]) -> None:
    """It only spares work."""
    assert secrets._may_hold_secrets(" ".join(place(words, "xyzxyzxyz")))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("night run", "night run"),
        ("token=abc", "token=***"),
        ('{\\"password\\":\\"abc\\"}', '{\\"password\\":\\"***\\"}'),
        ('{"password": "abc', '{"password": "***"'),
        ("Bearer abcdef123456", "Bearer ***"),
        ("bearer of news", "bearer of news"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END"),
        ("AKIAABCDEFGHIJKL1234", "***"),
        ("sk_live_abcdefghijklmnopqrstuvwx", "***"),
        ("password=" * 50_000, "password=***"),
        ("a=" * 50_000, "a=" * 50_000),
        ("a" * 100_000 + "key", "a" * 100_000 + "key"),
    ],
)
def test_a_single_text_is_masked_too(text: str, masked: str) -> None:
    """A name, for example. Hostile ones cost no more time than others."""
    assert mask_text(text) == masked


def test_labels_are_masked_by_their_names_and_values() -> None:
    """As options would be."""
    labels = (("seed", "7"), ("api token", "abc"), ("url", "https://me:abc@host"), ("site", "a=b"))

    assert mask_labels(labels) == (
        ("seed", "7"),
        ("api token", "***"),
        ("url", "https://me:***@host"),
        ("site", "a=b"),
    )
