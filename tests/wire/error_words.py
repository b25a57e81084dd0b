# ruff: noqa: E501  the words of others stay whole, so that they can be searched for
"""What providers and gateways say of a request that they do not take, as public bug reports and their documents have it."""

import json
from typing import Any


def openai(message: str, **fields: Any) -> dict[str, Any]:
    return {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}
    }


def detail(*where: Any, kind: str = "extra_forbidden", said: str = "Extra inputs are not permitted") -> Any:
    return {"type": kind, "loc": list(where), "msg": said, "input": {"a": "stream_options"}}


def numbered(rows: list[Any]) -> list[str]:
    """Names for rows that are too long to be named after."""
    return [str(place) for place in range(len(rows))]


OVERFLOWS = [
    # provider, what it says, tokens asked for, limit
    ("openai", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", 9000, 8192),
    ("openai, completions", "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10246 in your prompt; 100 for the completion).", 10246, 8191),
    ("openai responses", "Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("deepseek", "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion).", 132000, 131072),
    ("openrouter", "This endpoint's maximum context length is 128000 tokens. However, you requested about 140000 tokens (130000 of text input, 10000 in the output).", 130000, 128000),
    ("anthropic", "prompt is too long: 212345 tokens > 200000 maximum", 212345, 200000),
    ("anthropic, with the cap", "input length and `max_tokens` exceed context limit: 156321 + 48384 > 200000, decrease input length or `max_tokens` and try again", 156321, 200000),
    ("anthropic, bytes", "request_too_large: Request size exceeds model context window", None, None),
    ("bedrock", "ValidationException: Input is too long for requested model.", None, None),
    ("gemini", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1196265, 1048575),
    ("gemini, shorter", "The input token count exceeds the maximum number of tokens allowed 1048576.", None, 1048576),
    ("xai", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 537812, 131072),
    ("groq", "Please reduce the length of the messages or completion.", None, None),
    ("vllm", "This model's maximum context length is 4096 tokens. However, you requested 0 output tokens and your prompt contains at least 4097 input tokens, for a total of at least 4097 tokens. Please reduce the length of the input prompt or the number of requested output tokens.", 4097, 4096),
    ("vllm, newer", "You passed 5001 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3996 tokens. Please reduce the length of the input prompt.", 5001, 4096),
    ("vllm, engine", "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", None, 4096),
    ("sglang", "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 138000 tokens: 130000 tokens from the input messages and 8000 tokens for the completion.", 130000, 131072),
    ("together", "The input (300000 tokens) is longer than the model's context length (262144 tokens).", 300000, 262144),
    ("poolside", "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131393, 131040),
    ("litellm", "litellm.ContextWindowExceededError: the prompt was refused", None, None),
    ("siliconflow", "Input length (265330) exceeds model's maximum context length (262144).", 265330, 262144),
    ("copilot", "prompt token count of 140123 exceeds the limit of 128000", 140123, 128000),
    ("llama.cpp", "request (4010 tokens) exceeds the available context size (2560 tokens), try increasing it", 4010, 2560),
    ("lm studio", "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length.", 5000, 4096),
    ("lm studio, older", "Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.", 6269, 4096),
    ("lm studio, mlx", "Context size has been exceeded.", None, None),
    ("minimax", "invalid params, context window exceeds limit (2013)", None, None),
    ("kimi", "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", 291351, 262144),
    ("mistral", "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 40000, 32768),
    ("ollama", "prompt too long; exceeded max context length by 4096 tokens", None, None),
    ("other engines", "Prompt has 300,000 tokens, but the configured context size is 131,072 tokens", 300000, 131072),
    ("other engines, 2", "prompt length 5000 exceeds max_seq_len 4096", None, None),
    ("alibaba", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", None, 129024),
    ("zhipu", "Prompt exceeds max length", None, None),
    ("openai, functions", "This model's maximum context length is 4097 tokens. However, you requested 7000 tokens (4000 in the messages, 2000 in the functions, and 1000 in the completion).", 6000, 4097),
    ("tgi", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 2000 `inputs` tokens and 1024 `max_new_tokens`", 2000, 1512),
    ("tgi, inputs", "Input validation error: `inputs` must have less than 1024 tokens. Given: 1872", 1872, 1024),
]  # fmt: skip
"""Who says it, what, and the tokens of the prompt and the limit that are named in it."""

CAPPED = [
    # who, what, the prompt's tokens, the limit, whether no prompt is short enough
    ("openai", "This model's maximum context length is 8192 tokens. However, you requested 20100 tokens (100 in the messages, 20000 in the completion). Please reduce the length of the messages or completion.", 100, 8192, True),
    ("openai, completions", "This model's maximum context length is 8191 tokens, however you requested 8346 tokens (246 in your prompt; 8100 for the completion).", 246, 8191, False),
    ("openai, functions", "This model's maximum context length is 4097 tokens. However, you requested 5059 tokens (3900 in the messages, 159 in the functions, and 1000 in the completion).", 4059, 4097, False),
    ("deepseek", "This model's maximum context length is 65536 tokens. However, you requested 66000 tokens (58000 in the messages, 8000 in the completion).", 58000, 65536, False),
    ("anthropic", "input length and `max_tokens` exceed context limit: 100 + 300000 > 200000, decrease input length or `max_tokens` and try again", 100, 200000, True),
    ("anthropic, near", "input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease input length or `max_tokens` and try again", 197202, 200000, False),
    ("openrouter", "This endpoint's maximum context length is 128000 tokens. However, you requested about 140000 tokens (5000 of text input, 3000 of tool input, 132000 in the output). Please reduce the length of either one.", 8000, 128000, True),
    ("vllm", "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in the completion). Please reduce the length of the messages or completion.", 568, 6048, True),
    ("vllm, the field", "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (8000 > 4096 - 100).", 100, 4096, True),
    ("vllm, at least", "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.", 62466, 128000, False),
    ("vllm, newer", "You passed 3997 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3996 tokens. Please reduce the length of the input prompt.", 3997, 4096, False),
    ("sglang", "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 138000 tokens: 6000 tokens from the input messages and 132000 tokens for the completion.", 6000, 131072, True),
    ("tgi", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and 1024 `max_new_tokens`", 1000, 1512, False),
    ("litellm", "litellm.ContextWindowExceededError: AnthropicException - input length and `max_tokens` exceed context limit: 188,059 + 20,000 > 200,000", 188059, 200000, False),
]  # fmt: skip
"""What is said where the prompt would fit, but for the room that the answer is to have."""

TOO_LARGE = "Request too large for m on tokens per min (TPM): Limit 8000, Requested 34031, please reduce your message size"

NEVER_FIT = [
    TOO_LARGE,
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50136. The input or output tokens must be reduced in order to run successfully.",
    "tokens per min: Limit 8,000, Used 12, Requested 34,031. Please try again in 2s",
    "on tokens per day (TPD): Limit 8000, Used 0, Requested 34031. Please try again in 7m12s.",
    "Requested 34031 tokens, over the limit of 8000 tokens per minute",
]  # fmt: skip
"""Limits per minute or day that are less than one request takes."""

NOT_TOKENS = [
    "Rate limit: Limit 10, Used 10, Requested 100 of 5. Please try again in 2s",
    "Rate limit reached for m on requests per min (RPM): Limit 3, Used 3, Requested 5. Please try again in 2s. Fewer tokens do not help.",
    "Rate limit reached for images per minute: Limit 5, Used 4, Requested 10. Please try again in 2s.",
    "Too many concurrent streams, tokens aside: limit 5, requested 8. Please try again in 2s.",
    "Bandwidth of tokens: limit: 1048576 bytes per minute, requested: 2097152. Please try again in 2s.",
    "Connections limit 5, requested 8. Please try again in 2s.",
]  # fmt: skip
"""Limits on something else, of which a shorter request takes no less."""

FITS_LATER = "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s."

SPENT = [
    # status, error
    (429, {"message": "Your account org-1 is suspended, please check your plan and billing details", "type": "exceeded_current_quota_error"}),
    (429, {"message": "You exceeded your current token quota: <org-1> 100, please check your account balance", "type": "exceeded_current_quota_error"}),
    *((429, {"code": code, "message": "..."}) for code in ("1110", "1111", "1112", "1113", "1121", "1304", "1308", "1309", "1310")),
    (429, {"message": "余额不足或无可用资源包,请充值。"}),
    (400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing.", "type": "Arrearage"}),
    (429, {"message": "Your team 16f2 has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}),
    (403, {"message": "You have run out of credits or need a Grok subscription. personal-team-blocked:spending-limit. Your team reached its spending limit."}),
    (400, {"message": "You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC.", "type": "invalid_request_error"}),
    (429, {"message": "This request would exceed your daily rate limit of 1,000,000 tokens", "type": "rate_limit_error"}),
    (429, {"message": "Free tier daily limit reached"}),
    (429, {"message": "you have used up your daily free allocation of 10,000 neurons"}),
    (429, {"message": "You have exceeded your weekly usage limit"}),
    (429, {"message": "The usage limit has been reached"}),
    (403, {"message": "Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys"}),
    (402, {"message": "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 2666."}),
    (429, {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429}),
    (429, {"message": "Rate limit exceeded: free-models-per-day-high-balance.", "type": "rate_limit_error", "code": "429"}),
    (429, {"message": "Rate limit reached for m on requests per day. Limit 200 / day. Please try again in 20s."}),
    (429, {"message": "Too many tokens per day, please wait before trying again.", "type": "ThrottlingException"}),
    (429, {"message": "Your account reached TPD rate limit, current: 1500100, limit: 1500000", "type": "rate_limit_reached_error"}),
    (429, {"message": "Trial key: 1000 API calls / month"}),
    (429, {"message": "Quota exceeded for quota metric 'Requests' and limit 'Requests per day' of service 'x'."}),
    (503, {"message": "Quota exceeded for requests per day"}),
    (429, {"message": "insufficient credits, try again in 5s"}),
]  # fmt: skip
"""What is not there again while one waits at a prompt."""

THROTTLED = [
    {"message": "Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute_per_project_per_base_model with base model: gemini-pro. Please submit a quota increase request."},
    {"message": "Quota exceeded for quota metric 'Generate Content API requests per minute' and limit 'GenerateContent request limit per minute for a region' of service 'generativelanguage.googleapis.com'"},
    {"message": "You exceeded your current quota of 15 RPM"},
    {"message": "You exceeded your current quota: 250000 TPM"},
    {"message": "Quota exceeded: 5 requests / second"},
    {"message": "Quota exceeded: 60 calls/min, 1000 calls/day"},
    {"message": "Allocated quota exceeded, please increase your quota limit.", "code": "Throttling.AllocationQuota"},
    {"message": "Rate limit exceeded: free-models-per-min. Add 10 credits to unlock 1000 free model requests per day"},
    {"message": "Number of request tokens has exceeded your per-minute rate limit", "type": "rate_limit_error"},
    {"message": "request reached max organization TPM: 32000, please try again after 1 seconds", "type": "rate_limit_reached_error"},
    {"message": "Rate limit reached for m on tokens per day (TPD): Limit 100000, Used 97050, Requested 3019. Please try again in 59.616s.", "type": "tokens", "code": "rate_limit_exceeded"},
    {"message": "Too many requests. With a monthly plan you can do more."},
    {"code": "1302", "message": "High concurrency usage of this API, please reduce concurrency"},
    {"code": "1305", "message": "..."},
]  # fmt: skip
"""What a wait helps against; all with status 429."""

FIELDS = [
    # OpenAI and those who speak like it
    (openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter"), "max_tokens"),
    ({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model.", "code": "invalid_request_body"}}, "max_tokens"),
    (openai("Unknown parameter: 'stream_options'.", param="stream_options", code="unknown_parameter"), "stream_options"),
    (openai("Unknown parameter: 'stream_options'."), "stream_options"),
    (openai("no", param="parallel_tool_calls", code="unsupported_parameter"), "parallel_tool_calls"),
    (openai("'stream_options' is not allowed here", param="stream_options"), "stream_options"),
    (openai("This parameter is not supported", param="stream_options"), "stream_options"),
    (openai("Not supported.", param="body.stream_options"), "stream_options"),
    (openai("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", param="temperature", code="unsupported_value"), "temperature"),
    (openai("Unrecognized request argument supplied: parallel_tool_calls"), "parallel_tool_calls"),
    (openai("Unrecognized request argument supplied: stream_options. Please contact us through an Azure support request (request id: 2024)"), "stream_options"),
    (openai("Unrecognized request arguments supplied: stream_options, temperature"), "stream_options"),
    # validators
    ({"detail": [detail("body", "stream_options", kind="value_error.extra", said="extra fields not permitted")]}, "stream_options"),
    ({"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]}, "stream_options"),
    ({"object": "error", "message": {"detail": [detail("body", "stream_options")]}, "type": "invalid_request_error"}, "stream_options"),
    ({"object": "Error", "detail": [detail("body", "temperature")], "message": [detail("body", "temperature")], "code": 3001}, "temperature"),
    ({"detail": [detail("body", "messages", 0, "user", "name"), detail("body", "stream_options")]}, "stream_options"),
    ("stream_options: Extra inputs are not permitted", "stream_options"),
    ({"type": "error", "error": {"type": "invalid_request_error", "message": "thinking: Extra inputs are not permitted"}}, "thinking"),
    ({"message": "The model returned the following errors: temperature: Extra inputs are not permitted"}, "temperature"),
    (openai("Validation error at #/stream_options: Extra inputs are not permitted"), "stream_options"),
    ({"error": {"message": "Extra inputs are not permitted, field: 'stream_options', value: {'include_usage': True}"}}, "stream_options"),
    ("1 validation error for Request\nbody -> stream_options\n  extra fields not permitted (type=value_error.extra)", "stream_options"),
    ("1 validation error for Request\nstream_options\n  Extra inputs are not permitted [type=extra_forbidden, input_value={}]", "stream_options"),
    ({"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]"}, "stream_options"),
    ({"message": "Malformed input request: #: extraneous key [temperature] is not permitted, please reformat your input and try again."}, "temperature"),
    ({"message": "Additional properties are not allowed ('stream_options' was unexpected)"}, "stream_options"),
    ({"message": "Unrecognized key(s) in object: 'stream_options'"}, "stream_options"),
    # deserialisers
    ("Failed to deserialize the JSON body into the target type: unknown field `stream_options`, expected one of `model`, `messages` at line 1 column 40", "stream_options"),
    ('json: unknown field "parallel_tool_calls"', "parallel_tool_calls"),
    ('Unrecognized field "temperature" (class com.example.Request), not marked as ignorable', "temperature"),
    ("create() got an unexpected keyword argument 'stream_options'", "stream_options"),
    ([{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "thinking": Cannot find field.', "status": "INVALID_ARGUMENT"}}], "thinking"),
    # single vendors and gateways
    ({"error": {"message": "property 'reasoning_effort' is unsupported, did you mean 'reasoning_format'?", "type": "invalid_request_error"}}, "reasoning_effort"),
    ({"error": {"message": 'Error from provider(Groq,kimi: 400): {"error":{"message":"property \'thinking\' is unsupported"}}'}}, "thinking"),
    ({"code": "invalid-argument", "error": "Argument not supported on this model: reasoning_effort"}, "reasoning_effort"),
    ({"error": "Model grok-4-1-fast does not support parameter reasoningEffort."}, "reasoning_effort"),
    (openai("litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort'], for model=m. To drop these, set `litellm.drop_params=True`"), "reasoning_effort"),
    (openai("`temperature` is deprecated for this model."), "temperature"),
    (openai("temperature is deprecated for this model"), "temperature"),
    (openai("adaptive thinking is not supported on this model"), "thinking"),
    (openai("This model does not support the reasoning_effort parameter."), "reasoning_effort"),
    (openai("parallel_tool_calls is not supported by this server"), "parallel_tool_calls"),
    (openai("The parameter `stream_options` is currently not supported"), "stream_options"),
    ({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(openai("Unknown parameter: 'stream_options'."))}}}, "stream_options"),
]  # fmt: skip
"""Bodies that name a field as one that is not taken, and the field."""

OTHERS = [
    openai("Unknown parameter: 'messages'.", param="messages", code="unknown_parameter"),
    openai("Unsupported parameter: 'tools' is not supported with this model.", param="tools", code="unsupported_parameter"),
    openai("Unsupported value: 'messages[0].role' does not support 'developer' with this model.", param="messages[0].role", code="unsupported_value"),
    openai("Unknown parameter: 'messages[1].thinking'.", param="messages[1].thinking", code="unknown_parameter"),
    openai("Unknown parameter: 'tools[0].function.temperature'.", param="tools[0].function.temperature", code="unknown_parameter"),
    openai("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 5 instead.", param="temperature", code="decimal_above_max_value"),
    openai("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", param="max_tokens", code="invalid_value"),
    openai("Values above 2 are not allowed", param="temperature"),
    openai("Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter"),
    openai("Invalid schema for function 'read_file'", param="tools[0].function.parameters", code="invalid_function_parameters"),
    {"error": {"message": "`reasoning_effort` must be one of `none` or `default`", "type": "invalid_request_error"}},
    {"detail": [detail("body", "messages", 0, "user", "temperature")]},
    {"detail": [detail("body", "tools", 0, "function", "strict")]},
    {"detail": [detail("body", "tools")]},
    {"detail": [detail("body", "temperature", kind="float_parsing", said="Input should be a valid number")]},
    {"detail": [detail("body", "stream_options", kind="missing", said="Field required")]},
    {"message": "messages.65.content.1.tool_use.temperature: Extra inputs are not permitted"},
    {"message": "Extra inputs are not permitted, field: 'tools[0].eager_input_streaming', value: True"},
    {"message": "messages[0]: unknown field `thinking`, expected `role` or `content` at line 1 column 9"},
    {"message": "#/messages/0: extraneous key [thinking] is not permitted"},
    {"message": "#/messages/0/thinking: Extra inputs are not permitted"},
    {"message": "body -> messages -> 0 -> thinking extra fields not permitted"},
    {"message": "('messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'thinking' is unsupported)])"},
    {"message": "Invalid JSON payload received. Unknown name \"thinking\" at 'messages[0]': Cannot find field."},
    {"message": "Model not found"},
    {"message": "The temperature of the conversation is not supported by evidence"},
    {"message": "thinking about stream options"},
]  # fmt: skip
"""Bodies that are about something else, or about what can't be left out."""

PARTS = [
    (openai("Unsupported parameter: 'reasoning.effort' is not supported with this model.", param="reasoning.effort", code="unsupported_parameter"), "/reasoning"),
    (openai("Your organization must be verified to generate reasoning summaries.", param="reasoning.summary", code="unsupported_value"), "/reasoning"),
    ({"error": "Argument not supported on this model: reasoning.effort"}, "/reasoning"),
    (openai("property 'reasoning' is unsupported"), "/reasoning"),
    (openai("Encrypted content is not supported with this model.", param="include"), "include"),
    (openai("Encrypted content is not supported with this model."), "include"),
    (openai("reasoning.encrypted_content is not supported"), "include"),
    (openai("Unknown parameter: 'store'.", param="store", code="unknown_parameter"), "store"),
    (openai("Unknown parameter: 'input[0].store'.", param="input[0].store", code="unknown_parameter"), None),
    (openai("Unknown parameter: 'instructions'.", param="instructions", code="unknown_parameter"), None),
]  # fmt: skip
"""Bodies that name a part of a field of Responses, and what is to be left out."""

IMAGES = [
    (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
    (500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "type": "server_error"}}),
    (400, {"error": {"message": "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 746109"}}),
    (400, {"error": {"message": "llama is not a multimodal model", "type": "BadRequestError"}}),
    (400, {"error": {"message": "At most 0 image(s) may be provided in one prompt."}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Could not process image"}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5600000 bytes > 5242880 bytes"}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.52.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"}}),
    (413, {"type": "error", "error": {"type": "request_too_large", "message": "image exceeds 5 MB maximum"}}),
    (400, openai("You uploaded an unsupported image. Please make sure your image is valid.", code="image_parse_error")),
    (400, openai("nothing to read", code="invalid_image_format")),
    (400, openai("nothing to read", code="invalid_base64_image")),
    (400, openai("nothing to read", type="image_too_large")),
    (400, openai("The image data you provided does not represent a valid image.")),
    (400, openai("Invalid content type. image_url is only supported by certain models.")),
    (400, openai("Image inputs are not supported by this model.")),
    (400, openai("Image input is not enabled for this model")),
    (400, openai("This model does not support image inputs")),
    (400, openai("Unable to process input image. Please retry or report")),
    (400, openai("message type 'image_url' is not supported for model 'glm-5'")),
    (400, openai("messages.content.type is invalid, allowed values: ['text']", code="1210")),
    (400, openai("('messages.0.content' : value must be a string)")),
    (400, openai("invalid type: sequence, expected a string at line 1 column 60")),
    (422, openai("Model does not support vision")),
    (502, openai("image input is not supported")),
]  # fmt: skip
"""Statuses and bodies by which images are refused."""

SEALS = [
    (400, openai("The encrypted content gAAA...DQ== could not be verified.", code="invalid_encrypted_content")),
    (400, openai("could not be verified", code="invalid_encrypted_content")),
    (400, openai("The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content could not be decrypted or parsed.")),
    (400, openai("Item 'rs_1' of type 'reasoning' was provided without its required following item.")),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}),
    (400, {"error": {"code": 400, "message": '{"type":"error","error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}'}}),
    (400, openai("messages.19.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.")),
    (400, openai("messages.1.content.0: Invalid `data` in `redacted_thinking` block")),
    (400, {"error": {"code": 400, "message": "item['content'] is not an array", "type": "invalid_request_error"}}),
    (500, {"error": {"code": 500, "message": "item['content'] is not an array", "type": "server_error"}}),
    (400, openai("reasoning encrypted_content is not supported", param="input", code="encrypted_reasoning_not_supported")),
    (400, openai("reasoning.encrypted_content is not supported")),
    (400, openai("Corrupted thought signature.")),
    (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}'}}}),
]  # fmt: skip
"""Statuses and bodies by which sealed reasoning is refused."""

ECHOES = [
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "The `content[].thinking` in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 4. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    "reasoning_content must not be sent in the input messages",
    "messages.2.reasoning_content: Extra inputs are not permitted",
    "('messages.2' : property 'reasoning_content' is unsupported)",
    "messages[1]: unknown field `reasoning_content`, expected one of `role`, `content`",
]  # fmt: skip
"""Texts that miss reasoning, or refuse it."""
